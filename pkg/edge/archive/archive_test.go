// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// objects formats objects of an archive in short form.
func objects(list []Object) []string {
	var told []string
	for _, o := range list {
		told = append(told, o.String()+" "+string(o.Scope)+" "+o.Namespace)
	}
	return told
}

const operator = `# An operator, as its tools write it.
apiVersion: v1
kind: Namespace
metadata:
  name: abc
  labels: {pod-security.kubernetes.io/enforce: privileged}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: parrots.example.com
spec:
  group: example.com
  scope: Cluster
  names: {kind: Parrot}
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {name: hook, namespace: abc}}}
--- # A comment.
apiVersion: example.com/v1
kind: Parrot
metadata: {name: polly}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}
subjects:
- {kind: ServiceAccount, name: operator}
- {kind: ServiceAccount, name: other, namespace: kube-system}
- {kind: Group, name: "system:serviceaccounts:abc"}
- {kind: Group, name: "system:serviceaccounts"}
- {kind: User, name: "system:serviceaccount:abc:operator"}
- {kind: User, name: jane}
---
{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "abc"},
  "stringData": {"key": "-----BEGIN KEY-----\n---\n"}}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, namespace: ignored}
webhooks:
- name: a.example.com
  clientConfig: {service: {name: hook, namespace: abc}}
- name: b.example.com
  clientConfig: {url: "https://hook.example.com"}
---
apiVersion: example.org/v1
kind: Unheard
metadata: {name: of}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator
spec:
  replicas: 1
  template:
    spec: &pod
      containers:
      - name: operator
        env: [{name: WATCH_NAMESPACE, value: "yes"}, {name: NAMESPACE, value: abc}]
        args:
        - |
          first
          second --- not the end
`

func TestRead_Contents(t *testing.T) {
	a, err := Read(pack(t, content{"./deploy/operator.yaml", operator}, content{"deploy/deployment.yml", deployment},
		content{"README.md", "# Hello"}, content{"deploy/._operator.yaml", "\x00\x05"}))
	if err != nil {
		t.Fatal(err)
	}
	want := Contents{Namespaces: []string{"abc"}, MakesNamespaces: true, Ignored: []string{"README.md", "deploy/._operator.yaml"}}
	got := a.Contents
	got.Objects = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"CustomResourceDefinition.apiextensions.k8s.io parrots.example.com Cluster ",
		"Parrot.example.com polly Cluster ",
		"ClusterRoleBinding.rbac.authorization.k8s.io operator Cluster ",
		"Secret key Namespaced abc",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io hook Cluster ",
		"Unheard.example.org of Unknown ",
		"Deployment.apps operator Namespaced ",
	}, objects(a.Contents.Objects)); diff != "" {
		t.Error(diff)
	}
	if n := len(a.Contents.ClusterScoped()); n != 4 {
		t.Errorf("got %d objects of the cluster, want 4", n)
	}
}

func TestRead_WindowsFiles(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(configMap+"---\n"+deployment, "\n", "\r\n")
	a, err := Read(pack(t, content{"a.yaml", text}))
	if err != nil {
		t.Fatal(err)
	}
	if got := objects(a.Contents.Objects); len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

// All ways to name a namespace are equivalent, and in any order.
func TestContents_EmbeddedNamespace(t *testing.T) {
	namespace := func(name string) string {
		return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
	}
	in := func(kind, name, namespace string) string {
		return "---\napiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n"
	}
	for name, test := range map[string]struct {
		documents []string
		embedded  string
		uncertain bool
	}{
		"none":                          {[]string{configMap}, "", false},
		"an empty one":                  {[]string{in("ConfigMap", "a", `""`)}, "", false},
		"null":                          {[]string{in("ConfigMap", "a", "")}, "", false},
		"a Namespace":                   {[]string{namespace("xyz"), configMap}, "xyz", false},
		"an object":                     {[]string{in("Secret", "a", "xyz"), configMap}, "xyz", false},
		"an object of a kind of theirs": {[]string{strings.Replace(in("Parrot", "a", "xyz"), "v1", "example.com/v1", 1)}, "xyz", false},
		"both":                          {[]string{namespace("xyz"), in("Secret", "a", "xyz"), in("Service", "a", "xyz")}, "xyz", false},
		"both, but not the same":        {[]string{namespace("xyz"), in("Secret", "a", "abc")}, "", true},
		"two Namespaces":                {[]string{namespace("xyz"), namespace("abc"), configMap}, "", true},
		"two objects":                   {[]string{in("Secret", "a", "xyz"), in("Service", "a", "abc")}, "", true},
		"one that the cluster ignores":  {[]string{in("Node", "a", "xyz"), in("Service", "a", "abc")}, "abc", false},
		"that of a subject does not count": {[]string{configMap, "---\n" + binding("subjects: [{kind: ServiceAccount, name: a, namespace: xyz}]\n")},
			"", false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				a, err := Read(pack(t, content{"a.yaml", strings.Join(test.documents, "---\n")}))
				if err != nil {
					t.Fatal(err)
				}
				embedded, certain := a.Contents.Embedded()
				if embedded != test.embedded || certain == test.uncertain {
					t.Errorf("got %q, certain %v, of %v", embedded, certain, a.Contents.Namespaces)
				}
				slices.Reverse(test.documents)
			}
		})
	}
}

func TestDeliver_RewritesEveryNamespace(t *testing.T) {
	a, err := Read(pack(t, content{"operator.yaml", operator}, content{"deployment.yaml", deployment}))
	if err != nil {
		t.Fatal(err)
	}
	first := delivered(t, a, "target")
	if second := delivered(t, a, "target"); first != second {
		t.Error("the same archive was delivered in two ways")
	}
	if other := delivered(t, a, "other"); strings.ReplaceAll(other, "other", "target") != strings.ReplaceAll(first, "other", "target") {
		t.Error("more than the namespace depends on the namespace")
	}
	var objects []map[string]any
	if err := json.Unmarshal([]byte(first), &objects); err != nil {
		t.Fatal(err)
	}
	at := func(i int, path ...any) any {
		t.Helper()
		var value any = objects[i]
		for _, step := range path {
			switch step := step.(type) {
			case string:
				value = value.(map[string]any)[step]
			case int:
				value = value.([]any)[step]
			}
		}
		return value
	}
	for _, test := range []struct {
		object int
		path   []any
		want   any
	}{
		{0, []any{"metadata", "namespace"}, nil},
		{0, []any{"spec", "conversion", "webhook", "clientConfig", "service", "namespace"}, "target"},
		{1, []any{"metadata", "namespace"}, nil},
		{2, []any{"metadata", "namespace"}, nil},
		{2, []any{"subjects", 0, "namespace"}, "target"},
		{2, []any{"subjects", 1, "namespace"}, "target"},
		{2, []any{"subjects", 2, "name"}, "system:serviceaccounts:target"},
		{2, []any{"subjects", 3, "name"}, "system:serviceaccounts"},
		{2, []any{"subjects", 4, "name"}, "system:serviceaccount:target:operator"},
		{2, []any{"subjects", 5, "name"}, "jane"},
		{3, []any{"metadata", "namespace"}, "target"},
		{3, []any{"stringData", "key"}, "-----BEGIN KEY-----\n---\n"},
		{4, []any{"metadata", "namespace"}, nil},
		{4, []any{"webhooks", 0, "clientConfig", "service", "namespace"}, "target"},
		{4, []any{"webhooks", 1, "clientConfig", "service"}, nil},
		{5, []any{"metadata", "namespace"}, "target"},
		{6, []any{"metadata", "namespace"}, "target"},
		{6, []any{"spec", "template", "spec", "containers", 0, "env", 0, "value"}, "yes"},
		{6, []any{"spec", "template", "spec", "containers", 0, "env", 1, "value"}, "abc"},
	} {
		if got := at(test.object, test.path...); got != test.want {
			t.Errorf("object %d: %v is %v, want %v", test.object, test.path, got, test.want)
		}
	}
}

func TestDeliver_RoundTrips(t *testing.T) {
	a, err := Read(pack(t, content{"operator.yaml", operator}, content{"deployment.yaml", deployment}))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(pack(t, content{"all.json", `{"apiVersion": "v1", "kind": "List", "items": ` + delivered(t, a, "target") + `}`}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"target"}, again.Contents.Namespaces); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(delivered(t, a, "target"), delivered(t, again, "target")); diff != "" {
		t.Error(diff)
	}
}

func TestDeliver_OtherReferences(t *testing.T) {
	a, err := Read(pack(t, content{"a.yaml", `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {service: {name: a, namespace: abc}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: a}
spec: {claimRef: {name: a, namespace: abc}, csi: {driver: d, nodeStageSecretRef: {name: s, namespace: abc}, nodeExpandSecretRef: {name: s}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: a}
spec: {parameters: {kind: ConfigMap, name: a, namespace: abc}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {paramRef: {name: a, namespace: abc}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: a}
spec: {rules: [{subjects: [{kind: ServiceAccount, serviceAccount: {name: a, namespace: abc}}, {kind: User, user: {name: jane}}]}]}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: b}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a, namespace: abc}
spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: b, namespace: abc}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: b, namespace: abc}
spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: c}}
`}))
	if err != nil {
		t.Fatal(err)
	}
	text := delivered(t, a, "target")
	if strings.Contains(text, "abc") || strings.Count(text, `"namespace":"target"`) != 9 {
		t.Errorf("got %s", text)
	}
}

// A namespace-scoped agent gets no objects that it cannot create.
func TestDeliver_WithoutClusterScopedObjects(t *testing.T) {
	a, err := Read(pack(t, content{"operator.yaml", operator}))
	if err != nil {
		t.Fatal(err)
	}
	list, err := a.DeliverNamespaced("target")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range list {
		got = append(got, u.GetKind()+" "+u.GetNamespace())
	}
	if diff := cmp.Diff([]string{"Secret target", "Unheard target"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeliver_NamespaceIsDNSLabel(t *testing.T) {
	a, err := Read(pack(t, content{"a.yaml", configMap}))
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"", "ABC", "a.b", "-a", strings.Repeat("a", 64)} {
		if _, err := a.Deliver(namespace); err == nil {
			t.Errorf("delivered to %q", namespace)
		}
	}
}

func delivered(t *testing.T, a *Archive, namespace string) string {
	t.Helper()
	list, err := a.Deliver(namespace)
	if err != nil {
		t.Fatal(err)
	}
	contents := []map[string]any{}
	for _, u := range list {
		contents = append(contents, u.Object)
	}
	text, err := json.Marshal(contents)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzRead looks for panics, and for archives that are read and cannot be delivered.
func FuzzRead(f *testing.F) {
	f.Add(operator)
	f.Add(deployment)
	f.Add(bomb(3))
	f.Fuzz(func(t *testing.T, text string) {
		a := &Archive{}
		if a.add(&file{"a.yaml", []byte(text)}, newBudget()) != nil || a.finish(nil) != nil {
			return
		}
		list, err := a.Deliver("target")
		if err != nil || len(list) != len(a.Contents.Objects) {
			t.Errorf("read, and not delivered: %v", err)
		}
		for i, u := range list {
			if namespaced := a.Contents.Objects[i].Scope != Cluster; (u.GetNamespace() == "target") != namespaced || !namespaced && u.GetNamespace() != "" {
				t.Errorf("%s has the namespace %q", a.Contents.Objects[i], u.GetNamespace())
			}
		}
	})
}
