// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/ignorefields"
)

var (
	core     = schema.GroupVersion{Version: "v1"}
	webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
)

// TestUpdate_PreservesFieldsOfOthers has one row for each program of a cluster that sets fields which a manifest does not name.
func TestUpdate_PreservesFieldsOfOthers(t *testing.T) {
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: d}}, " +
		"template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i, env: [{name: A, value: a}]}]}}}}"
	for name, row := range map[string]struct {
		resource         schema.GroupVersionResource
		manifest, change string
		want             string
		path             []string
	}{
		"an autoscaler": {deployments, deployment, "{spec: {replicas: 4}}", "4", []string{"spec", "replicas"}},
		"kubectl rollout restart": {deployments, deployment, "{spec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}}}",
			"map[kubectl.kubernetes.io/restartedAt:now]", []string{"spec", "template", "metadata", "annotations"}},
		"an injected sidecar": {deployments, deployment, "{spec: {template: {spec: {volumes: [{name: v, emptyDir: {}}]}}}}",
			"[map[emptyDir:map[] name:v]]", []string{"spec", "template", "spec", "volumes"}},
		"the controller of tokens": {core.WithResource("secrets"),
			"{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, annotations: {kubernetes.io/service-account.name: default}}}",
			"{data: {another: dG9rZW4=}}", "dG9rZW4=", []string{"data", "another"}},
		"pull secrets of an account": {core.WithResource("serviceaccounts"),
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}, secrets: [{name: ours}]}",
			"{secrets: [{name: theirs}], imagePullSecrets: [{name: theirs}]}", "[map[name:theirs]]", []string{"imagePullSecrets"}},
		"an injected CA": {webhooks, `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: x}, webhooks: [{
			name: x.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}, namespaceSelector: {matchLabels: {none: none}}}]}`,
			"CA", "true", []string{"webhooks"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.manifest(row.resource, UpdateStrategy{}, row.manifest)
			if row.resource == webhooks {
				m.Namespace, m.Name = "", "x-"+w.namespace
				m.Object.SetName(m.Name)
				t.Cleanup(func() { _ = w.client.Resource(webhooks).Delete(t.Context(), m.Name, metav1.DeleteOptions{}) })
			}
			a := w.work("a")
			if row.resource.Resource == "secrets" {
				// Kubernetes deletes the token of an account that does not exist.
				account := Target{core.WithResource("serviceaccounts"), w.namespace, "default"}
				worktest.Eventually(t, "the namespace has its ServiceAccount", func() bool { return w.get(account) != nil })
			}
			w.apply(a, m)
			if row.resource.Resource == "secrets" {
				worktest.Eventually(t, "the Secret has a token", func() bool {
					token, _, _ := unstructured.NestedString(w.get(m.Target).Object, "data", "token")
					return token != ""
				})
			}
			ca := "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
			if row.change == "CA" {
				w.change(m.Target, func(o *unstructured.Unstructured) {
					list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
					_ = unstructured.SetNestedField(list[0].(map[string]any), ca, "clientConfig", "caBundle")
					_ = unstructured.SetNestedSlice(o.Object, list, "webhooks")
				})
			} else {
				w.patch(m.Target, row.change)
			}
			before := w.get(m.Target)
			for range 2 {
				if after := w.apply(a, m); after.GetResourceVersion() != before.GetResourceVersion() {
					t.Errorf("the object is written")
				}
			}
			m.Object.SetLabels(map[string]string{"another": "manifest"})
			have := w.apply(a, m)
			if row.change == "CA" {
				list, _, _ := unstructured.NestedSlice(have.Object, "webhooks")
				if got, _, _ := unstructured.NestedString(list[0].(map[string]any), "clientConfig", "caBundle"); got != ca {
					t.Errorf("the CA bundle is %q", got)
				}
				return
			}
			w.expect(have, row.want, row.path...)
		})
	}
}

// patch patches an object as another program.
func (w *world) patch(t Target, text string) {
	w.Helper()
	patch, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.client.Resource(t.GroupVersionResource).Namespace(t.Namespace).Patch(w.Context(), t.Name, types.StrategicMergePatchType,
		patch, metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		w.Fatal(err)
	}
}

// TestUpdate_OfFormerAgents: a field that an agent has set by updates is removed from the object when it is removed from the manifest.
func TestUpdate_OfFormerAgents(t *testing.T) {
	w := newWorld(t)
	a := w.work("a")
	m := w.configMap(UpdateStrategy{Type: Replace}, "{a: '1', b: '2'}")
	m.Object.SetLabels(map[string]string{"old": "label"})
	have := w.apply(a, m)
	if entry := have.GetManagedFields()[0]; entry.Operation != metav1.ManagedFieldsOperationUpdate {
		t.Fatalf("it is set by %v", entry)
	}
	w.change(m.Target, func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, "3", "data", "c") })
	have = w.apply(a, w.configMap(UpdateStrategy{}, "{a: '1'}"))
	w.expect(have, "map[a:1 c:3]", "data")
	if labels := have.GetLabels(); len(labels) > 0 {
		t.Errorf("the labels are %v", labels)
	}
}

// TestStrategy_Changes: fields that are removed from a manifest are removed from the object even if the strategy or its manager changes at the same
// time.
func TestStrategy_Changes(t *testing.T) {
	strategies := []UpdateStrategy{{}, {Type: ServerSideApply}, {Type: ServerSideApply, Manager: "work-agent-own"}, {Type: Replace}, {Type: CreateOnly}}
	for _, before := range strategies {
		for _, after := range strategies[:3] {
			t.Run(before.Type+before.Manager+" to "+after.Type+after.Manager, func(t *testing.T) {
				w := newWorld(t)
				a := w.work("a")
				w.apply(a, w.configMap(before, "{a: '1', b: '2'}"))
				have := w.apply(a, w.configMap(after, "{a: '3'}"))
				w.expect(have, "map[a:3]", "data")
				for _, entry := range have.GetManagedFields() {
					if entry.Operation != metav1.ManagedFieldsOperationApply {
						t.Errorf("fields are still set by %s, %s", entry.Manager, entry.Operation)
					}
				}
				if again := w.apply(a, w.configMap(after, "{a: '3'}")); again.GetResourceVersion() != have.GetResourceVersion() {
					t.Error("what is as wanted is written")
				}
			})
		}
	}
	t.Run("the fields of another work stay its own", func(t *testing.T) {
		w := newWorld(t)
		own := UpdateStrategy{Type: ServerSideApply, Manager: "work-agent-b"}
		w.apply(w.work("b"), w.configMap(own, "{b: '2'}"))
		have := w.apply(w.work("a"), w.configMap(UpdateStrategy{Type: ServerSideApply}, "{a: '1'}"))
		w.expect(have, "map[a:1 b:2]", "data")
		if !slices.ContainsFunc(have.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == own.Manager }) {
			t.Errorf("they are set by %v", have.GetManagedFields())
		}
	})
}

// TestUpdate_FallsBackToReplace: an object that cannot be applied is replaced, as before server-side apply existed.
func TestUpdate_FallsBackToReplace(t *testing.T) {
	for name, spec := range map[string]string{
		"an unknown field":        "{selector: {matchLabels: {app: d}}, unknown: field, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i}]}}}",
		"an item that is doubled": "{selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i, env: [{name: A, value: a}, {name: A, value: b}]}]}}}",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.work("a")
			var why error
			a.Replaced = func(err error) { why = err }
			m := w.manifest(deployments, UpdateStrategy{}, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: "+spec+"}")
			w.apply(a, m)
			if why == nil || !strings.Contains(why.Error(), "failed to create typed patch object") {
				t.Errorf("it is replaced because of %v", why)
			}
			_ = unstructured.SetNestedField(m.Object.Object, int64(3), "spec", "replicas")
			have := w.apply(a, m)
			w.expect(have, 3, "spec", "replicas")
			m.Strategy.Type = ServerSideApply
			if _, err := a.Apply(t.Context(), m, ""); err == nil || !strings.Contains(err.Error(), "failed to create typed patch object") {
				t.Errorf("server-side apply is %v", err)
			}
		})
	}
}

func TestUpdate_Secrets(t *testing.T) {
	for _, strategy := range []string{Update, ServerSideApply, Replace} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t)
			a := w.work("a")
			secret := func(data string) Manifest {
				return w.manifest(core.WithResource("secrets"), UpdateStrategy{Type: strategy}, "{apiVersion: v1, kind: Secret, metadata: {name: s}, "+data+"}")
			}
			w.expect(w.apply(a, secret("data: {a: b2xk, c: Yw==}, stringData: {a: new, b: '2'}")), "map[a:bmV3 b:Mg== c:Yw==]", "data")
			have := w.apply(a, secret("stringData: {a: newer}"))
			w.expect(have, "map[a:bmV3ZXI=]", "data")
			if again := w.apply(a, secret("stringData: {a: newer}")); again.GetResourceVersion() != have.GetResourceVersion() {
				t.Error("what is as wanted is written")
			}
		})
	}
}

// TestIgnoreFields_RetainedWhenOthersChange: a field that is applied when the object is created, and ignored after that, is not removed with the next
// manifest.
func TestIgnoreFields_RetainedWhenOthersChange(t *testing.T) {
	text := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {kept: ours}}, spec: {replicas: 1, minReadySeconds: SECONDS, selector: {matchLabels: {app: d}}, " +
		"template: {metadata: {labels: {app: d}}, spec: {containers: [{name: c, image: i, args: [x], env: [{name: A, value: a}, {name: B, value: b}]}, {name: d, image: j}]}}}}"
	ignore := []workv1.IgnoreField{{Condition: workv1.IgnoreFieldsConditionOnSpokePresent,
		JSONPaths:    []string{".metadata.annotations.kept", ".spec.replicas"},
		JSONPointers: []string{"/spec/template/spec/containers/0/args"},
		JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "d")`,
			`.spec.template.spec.containers[] | select(.name == "c") | .env[] | select(.name == "B")`},
	}}
	w := newWorld(t)
	a := w.work("a")
	manifest := func(seconds string) Manifest {
		m := w.manifest(deployments, UpdateStrategy{Type: ServerSideApply, Force: true}, strings.ReplaceAll(text, "SECONDS", seconds))
		prepared, err := ignorefields.Prepare(m.Object, ignore)
		if err != nil {
			t.Fatal(err)
		}
		m.Strategy.Prepared = prepared
		return m
	}
	w.apply(a, manifest("1"))
	check := func(have *unstructured.Unstructured, replicas int, seconds int) {
		t.Helper()
		w.expect(have, replicas, "spec", "replicas")
		w.expect(have, seconds, "spec", "minReadySeconds")
		w.expect(have, "ours", "metadata", "annotations", "kept")
		containers, _, _ := unstructured.NestedSlice(have.Object, "spec", "template", "spec", "containers")
		if len(containers) != 2 {
			t.Fatalf("the containers are %v", containers)
		}
		for _, c := range containers {
			c := c.(map[string]any)
			if env, _ := c["env"].([]any); c["name"] == "c" && (len(env) != 2 || len(c["args"].([]any)) != 1) {
				t.Errorf("the container is %v", c)
			}
		}
	}
	check(w.apply(a, manifest("2")), 1, 2)
	w.patch(manifest("1").Target, "{spec: {replicas: 5}}")
	check(w.apply(a, manifest("3")), 5, 3)
	// The other program owns the field: no later change of the manifest makes it ours again.
	for _, entry := range w.apply(a, manifest("4")).GetManagedFields() {
		if entry.Manager == DefaultManager && strings.Contains(string(entry.FieldsV1.GetRawBytes()), "f:replicas") {
			t.Errorf("the agent owns the field of another: %s", entry.FieldsV1.GetRawBytes())
		}
	}
}
