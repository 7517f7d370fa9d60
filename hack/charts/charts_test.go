// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const root = "../.."

// keep is Helm's own annotation, which has no meaning elsewhere.
const keep = "helm.sh/resource-policy"

// objects are those of a chart, without the annotation keep.
func objects(t *testing.T, chart, namespace string, values map[string]any) (all []*unstructured.Unstructured) {
	t.Helper()
	c, err := Load(root, chart)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(c, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if name == "NOTES.txt" {
			if strings.Contains(text, "<no value>") {
				t.Errorf("NOTES.txt has a value that there is not:\n%s", text)
			}
			continue
		}
		all = append(all, decoded(t, text)...)
	}
	return all
}

func decoded(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

func without(o *unstructured.Unstructured, annotation string) {
	annotations := o.GetAnnotations()
	delete(annotations, annotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// byName are objects in a form that says what differs, without the namespace of the release.
func byName(t *testing.T, all []*unstructured.Unstructured, release string) map[string]any {
	t.Helper()
	named := map[string]any{}
	for _, o := range all {
		if o.GetKind() == "Namespace" && o.GetName() == release {
			continue
		}
		without(o, keep)
		name := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
		if _, twice := named[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		data, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		named[name] = v
	}
	return named
}

func equal(t *testing.T, chart, manifests []*unstructured.Unstructured, release string) {
	t.Helper()
	if diff := cmp.Diff(byName(t, manifests, release), byName(t, chart, release)); diff != "" {
		t.Errorf("the manifests (-) and the chart (+):\n%s", diff)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func registrationOf(values map[string]any) map[string]any {
	return map[string]any{"registration": values}
}

// TestHub_MatchesKustomize: a test of pkg/deploy holds what it builds to what kustomize builds.
func TestHub_MatchesKustomize(t *testing.T) {
	external := map[string]any{"etcd": map[string]any{"mode": "external", "external": map[string]any{
		"endpoints": []any{"https://etcd.clusterhub-system.svc:2379"}}}}
	for name, way := range map[string]struct {
		values map[string]any
		hub    deploy.Hub
	}{
		"base":                  {nil, deploy.Hub{}},
		"external-etcd":         {external, deploy.Hub{ExternalEtcd: true}},
		"aws-auth":              {registrationOf(on("awsAuth")), deploy.Hub{Components: []string{"aws-auth"}}},
		"bootstrap":             {registrationOf(on("bootstrap")), deploy.Hub{Components: []string{"bootstrap"}}},
		"upstream-agents":       {registrationOf(on("bootstrap", "upstreamAgents")), deploy.Hub{Components: []string{"bootstrap", "upstream-agents"}}},
		"manual-certificates":   {map[string]any{"hubCertificateApprover": map[string]any{"enabled": false}}, deploy.Hub{Components: []string{"manual-certificates"}}},
		"external, two of them": {merged(external, registrationOf(on("awsAuth", "bootstrap"))), deploy.Hub{ExternalEtcd: true, Components: []string{"aws-auth", "bootstrap"}}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, objects(t, Hub, HubNamespace, way.values), must(way.hub.Objects())(t), HubNamespace)
		})
	}
}

// TestHub_MonitoringMatchesFolder verifies that the chart adds the objects of artifacts/monitoring.
func TestHub_MonitoringMatchesFolder(t *testing.T) {
	manifests := must(deploy.Hub{}.Objects())(t)
	for _, name := range []string{"monitors.yaml", "rules.yaml"} {
		manifests = append(manifests, decoded(t, string(must(os.ReadFile(filepath.Join(root, "artifacts", "monitoring", name)))(t)))...)
	}
	// Its program is not deployed by default: TestMonitors_OfProvider.
	manifests = slices.DeleteFunc(manifests, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "PodMonitor" && o.GetName() == "cluster-provider-kubeconfig"
	})
	metrics := map[string]any{}
	for _, name := range []string{"serviceMonitor", "podMonitor", "prometheusRule"} {
		metrics[name] = on("enabled")
	}
	equal(t, objects(t, Hub, HubNamespace, map[string]any{"metrics": metrics}), manifests, HubNamespace)

	dashboard := must(os.ReadFile(filepath.Join(root, "artifacts", "monitoring", "dashboard.json")))(t)
	for _, o := range objects(t, Hub, HubNamespace, map[string]any{"metrics": map[string]any{"dashboard": on("enabled")}}) {
		if o.GetKind() == "ConfigMap" {
			if text, _, _ := unstructured.NestedString(o.Object, "data", "clusterhub.json"); strings.TrimSpace(text) != strings.TrimSpace(string(dashboard)) {
				t.Errorf("the ConfigMap %s is not the dashboard: %.200s", o.GetName(), text)
			}
		}
	}
}

// Components that hub-controller-manager has to be told of, which kustomize leaves to the user.
func TestHub_ConfiguresControllerRights(t *testing.T) {
	values := registrationOf(map[string]any{
		"drivers": []any{"awsirsa", "csr"}, "perClusterRoles": true, "leftoverTTL": "720h",
		"autoApproval": map[string]any{"enabled": true, "csrIdentities": []any{"a:b", "c"}},
	})
	hub := must(deploy.Hub{Components: []string{"auto-approval", "leftovers", "per-cluster-roles"}}.Objects())(t)
	shared := []string{"--registration-drivers=awsirsa,csr", "--feature-gates=ManagedClusterAutoApproval=true", "--auto-approved-csr-identities=a:b,c"}
	for _, o := range hub {
		if o.GetKind() != "Deployment" {
			continue
		}
		switch o.GetName() {
		case "hub-controller-manager":
			addArgs(t, o, append(slices.Clone(shared), "--agent-roles=per-cluster", "--leftover-ttl=720h")...)
		case "hub-certificate-approver":
			addArgs(t, o, shared...)
		}
	}
	equal(t, objects(t, Hub, HubNamespace, values), hub, HubNamespace)
}

func addArgs(t *testing.T, o *unstructured.Unstructured, args ...string) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	container := containers[0].(map[string]any)
	for _, arg := range args {
		container["args"] = append(container["args"].([]any), arg)
	}
	if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

func TestProvider_MatchesKustomize(t *testing.T) {
	values := map[string]any{"clusterProvider": on("enabled")}
	manifests := append(must(deploy.Hub{}.Objects())(t), must(deploy.ClusterProvider{}.Objects())(t)...)
	equal(t, objects(t, Hub, HubNamespace, values), manifests, HubNamespace)
}

func TestOperator_MatchesKustomize(t *testing.T) {
	values := map[string]any{"hubOperator": on("enabled")}
	manifests := append(must(deploy.Hub{}.Objects())(t), must(deploy.Operator{}.Objects())(t)...)
	equal(t, objects(t, Hub, HubNamespace, values), manifests, HubNamespace)
}

// Names are written out wherever they stand: in references, flags, flow schemas and policies.
func TestHub_CustomNames(t *testing.T) {
	names := map[string]string{HubNamespace: "other", "openmcp-system": "elsewhere", "clusterhub-operator": "operators"}
	values := map[string]any{"clusterProvider": map[string]any{"enabled": true, "namespace": "elsewhere"}, "hubOperator": map[string]any{"enabled": true, "namespace": "operators"}}
	operator := deploy.Operator{Changes: deploy.Changes{Names: map[string]string{"clusterhub-operator": "operators"}}}
	provider := deploy.ClusterProvider{Changes: deploy.Changes{Names: map[string]string{"openmcp-system": "elsewhere"}}}
	manifests := append(must(deploy.Hub{Changes: deploy.Changes{Names: map[string]string{HubNamespace: "other"}}}.Objects())(t), must(provider.Objects())(t)...)
	manifests = append(manifests, must(operator.Objects())(t)...)
	all := objects(t, Hub, "other", values)
	equal(t, all, manifests, "other")
	for _, o := range all {
		text := string(must(o.MarshalJSON())(t))
		for name := range names {
			if strings.Contains(text, name) {
				t.Errorf("%s %s still has %s", o.GetKind(), o.GetName(), name)
			}
		}
	}
}

// With other names of ServiceAccounts, each right, flow and policy about one is about the other.
func TestHub_CustomServiceAccounts(t *testing.T) {
	names := map[string]string{"hubApiserver": "hub-apiserver", "hubControllerManager": "hub-controller-manager", "hubCertificateApprover": "hub-certificate-approver",
		"clusterProvider": "cluster-provider-kubeconfig", "hubOperator": "hub-operator"}
	values := map[string]any{}
	for component := range names {
		values[component] = map[string]any{"serviceAccount": map[string]any{"name": strings.ToLower(component) + "-x"}}
	}
	optional := map[string]any{"clusterProvider": on("enabled"), "hubOperator": on("enabled")}
	for component := range optional {
		values[component].(map[string]any)["enabled"] = true
	}
	// The objects must be the same, with each name replaced that is the name of a ServiceAccount.
	text := string(must(json.Marshal(byName(t, objects(t, Hub, HubNamespace, optional), "")))(t))
	for component, name := range names {
		account := strings.ToLower(component) + "-x"
		for _, around := range []string{
			`"kind":"ServiceAccount","name":"%s"`, `"serviceAccountName":"%s"`, `"serviceAccount":{"name":"%s"`, HubNamespace + `:%s'`, `openmcp-system:%s'`,
			`"kind":"ServiceAccount","metadata":{"name":"%s"`, `"ServiceAccount ` + HubNamespace + `/%s"`, `"ServiceAccount openmcp-system/%s"`, `"ServiceAccount clusterhub-operator/%s"`,
		} {
			text = strings.ReplaceAll(text, fmt.Sprintf(around, name), fmt.Sprintf(around, account))
		}
		labelled := fmt.Sprintf(`"kind":"ServiceAccount","metadata":{"labels":{"app.kubernetes.io/name":%q},"name":`, name)
		text = strings.ReplaceAll(text, labelled+strconv.Quote(name), labelled+strconv.Quote(account))
	}
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, any(byName(t, objects(t, Hub, HubNamespace, values), ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// merged is a and b, which have no key in common.
func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// TestAgent_MatchesJoin compares with what `kubectl hub join` and `agent install` deploy, but for the labels by which the command
// line knows its own.
func TestAgent_MatchesJoin(t *testing.T) {
	const kubeconfig = "a kubeconfig"
	secret := map[string]any{"kubeconfig": kubeconfig}
	for name, way := range map[string]struct {
		namespace string
		values    map[string]any
		agent     deploy.Agent
	}{
		"no works": {AgentNamespace, map[string]any{"clusterName": "c1"}, deploy.Agent{Args: []string{"--cluster-name=c1"}}},
		"flags": {AgentNamespace, map[string]any{"clusterName": "c1", "registration": map[string]any{"auth": "csr"}, "clusterServerURL": "https://c1:6443",
			"clusterLabels": map[string]any{"b": "2", "a": "1"}, "detectClusterLabels": true},
			deploy.Agent{Args: []string{"--cluster-name=c1", "--registration-auth=csr", "--cluster-server-url=https://c1:6443",
				"--cluster-ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "--cluster-labels=a=1,b=2", "--detect-cluster-labels"}}},
		"works": {AgentNamespace, map[string]any{"works": map[string]any{"role": "cluster-admin"}}, deploy.Agent{Works: deploy.Works{Role: "cluster-admin"}}},
		"works in some namespaces": {AgentNamespace, map[string]any{"works": map[string]any{"role": "admin", "namespaces": []any{"a", "b"}}},
			deploy.Agent{Works: deploy.Works{Role: "admin", Namespaces: []string{"a", "b"}}}},
		"works that upgrade the agent": {AgentNamespace, map[string]any{"works": map[string]any{"role": "admin", "upgradable": true}},
			deploy.Agent{Works: deploy.Works{Role: "admin"}, Upgradable: true}},
		"works that upgrade the agent, of another registry": {AgentNamespace, map[string]any{"works": map[string]any{"role": "admin", "upgradable": true},
			"image": map[string]any{"registry": "images.example.com:5000/mirror", "tag": "v1"}},
			deploy.Agent{Works: deploy.Works{Role: "admin"}, Upgradable: true, Image: "images.example.com:5000/mirror/clusterhub/hub-agent:v1"}},
		"elsewhere": {"other", map[string]any{"works": map[string]any{"role": "admin"}}, deploy.Agent{Namespace: "other", Works: deploy.Works{Role: "admin"}}},
		"edge": {AgentNamespace, map[string]any{"works": map[string]any{"role": "admin"}, "edge": on("enabled")},
			deploy.Agent{Args: []string{"--edge", "--edge-namespace=edge"}, Works: deploy.Works{Role: "admin"}}},
		"one namespace": {"team-a", map[string]any{"clusterName": "c1", "namespaceScoped": true},
			deploy.Agent{Namespace: "team-a", Scoped: true, Args: []string{"--cluster-name=c1"}}},
		"one namespace, with works that upgrade the agent": {"team-a", map[string]any{"clusterName": "c1", "namespaceScoped": true, "works": map[string]any{"upgradable": true}},
			deploy.Agent{Namespace: "team-a", Scoped: true, Upgradable: true, Args: []string{"--cluster-name=c1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			way.values["bootstrap"], way.agent.Kubeconfig = secret, []byte(kubeconfig)
			manifests := must(way.agent.Objects())(t)
			for _, o := range manifests {
				labels := o.GetLabels()
				delete(labels, deploy.LabelManagedBy)
				delete(labels, deploy.AgentLabel)
				if len(labels) == 0 {
					labels = nil
				}
				o.SetLabels(labels)
				unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
			}
			equal(t, objects(t, Agent, way.namespace, way.values), manifests, way.namespace)
		})
	}
	if AgentNamespace != registration.AgentNamespace {
		t.Errorf("agents are in %s", registration.AgentNamespace)
	}
}

// ways are the ci/*-values.yaml of a chart, one for each way to install it.
func ways(t *testing.T, chart string) map[string]map[string]any {
	t.Helper()
	files := must(filepath.Glob(filepath.Join(Dir(root, chart), "ci", "*-values.yaml")))(t)
	if len(files) == 0 {
		t.Fatalf("%s has no ci/*-values.yaml", chart)
	}
	all := map[string]map[string]any{}
	for _, file := range files {
		values := map[string]any{}
		if err := sigsyaml.UnmarshalStrict(must(os.ReadFile(file))(t), &values); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	return all
}

// TestGenerated: what is written in artifacts/deploy and docs is what the charts say now. `make verify` says so, too.
func TestGenerated(t *testing.T) {
	copied := t.TempDir()
	for _, dir := range []string{"artifacts/charts", "artifacts/deploy", "artifacts/monitoring"} {
		if err := os.CopyFS(filepath.Join(copied, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	docs := filepath.Join("docs", "helm.md")
	if err := errors.Join(os.Mkdir(filepath.Join(copied, "docs"), 0o755), os.WriteFile(filepath.Join(copied, docs), must(os.ReadFile(filepath.Join(root, docs)))(t), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Generate(copied); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(copied, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := must(filepath.Rel(copied, path))(t)
		if !bytes.Equal(must(os.ReadFile(path))(t), must(os.ReadFile(filepath.Join(root, name)))(t)) {
			t.Errorf("%s is not what the charts say: make the change in artifacts/charts, and run 'make generate'", name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
