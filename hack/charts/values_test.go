// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"
)

// namespaces are where each way is installed.
func namespaceOf(chart, way string) string {
	switch {
	case chart == Hub:
		return HubNamespace
	case way == "namespace":
		return "team-a"
	}
	return AgentNamespace
}

// TestWays_OmitObjectsOfComponents verifies this, as Helm uses server-side apply and would conflict with other owners of a field.
func TestWays_OmitObjectsOfComponents(t *testing.T) {
	for _, chart := range Names {
		for name, values := range ways(t, chart) {
			t.Run(chart+" "+name, func(t *testing.T) {
				for _, o := range objects(t, chart, namespaceOf(chart, name), values) {
					id := o.GetKind() + " " + o.GetName()
					given, _, _ := unstructured.NestedString(values, "tls", "caBundle")
					if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "caBundle"); found && given == "" {
						t.Errorf("%s has a caBundle: hub-apiserver or cert-manager writes it", id)
					}
					_, data := o.Object["data"]
					_, stringData := o.Object["stringData"]
					// That of the reader of metrics is filled in by Kubernetes.
					token := o.Object["type"] == "kubernetes.io/service-account-token" && !data && !stringData
					if o.GetKind() == "Secret" && !token && (o.GetName() != "bootstrap-hub-kubeconfig" || (data || stringData) && values["bootstrap"] == nil) {
						t.Errorf("%s has data that no value says", id)
					}
					for annotation := range o.GetAnnotations() {
						if strings.HasPrefix(annotation, "helm.sh/hook") {
							t.Errorf("%s is a hook: then uninstall leaves it", id)
						}
					}
					if _, found := o.Object["status"]; found {
						t.Errorf("%s has a status", id)
					}
					if o.GetKind() == "HorizontalPodAutoscaler" {
						t.Errorf("%s: replicas of what it scales must not be rendered", id)
					}
				}
			})
		}
	}
}

// TestWays_NoGoAwayForFront: kube-apiserver has one connection to an aggregated server for all its users, and cannot send the body of a
// write a second time: a GOAWAY fails each write that is sent in that moment, with 503.
func TestWays_NoGoAwayForFront(t *testing.T) {
	for name, values := range ways(t, Hub) {
		servers := 0
		for _, o := range objects(t, Hub, HubNamespace, values) {
			if o.GetKind() != "Deployment" || o.GetName() != "hub-apiserver" {
				continue
			}
			servers++
			if strings.Contains(fmt.Sprint(o.Object["spec"]), "--goaway-chance") {
				t.Errorf("%s: hub-apiserver has the flag --goaway-chance", name)
			}
		}
		if servers != 1 {
			t.Errorf("%s has %d Deployments of hub-apiserver", name, servers)
		}
	}
}

// TestKeepData verifies that uninstall retains only objects that hold data, and never an APIService: an APIService without its server blocks the
// deletion of every namespace of the cluster.
func TestKeepData(t *testing.T) {
	provider := map[string]any{"clusterProvider": on("enabled"), "hubOperator": on("enabled")}
	works := map[string]any{"works": map[string]any{"role": "admin"}}
	for _, test := range []struct {
		chart, namespace string
		values           map[string]any
		want             []string
	}{
		{Hub, HubNamespace, provider, []string{"Namespace clusterhub-access", "Namespace clusterhub-registration", "Namespace openmcp-system", "PersistentVolumeClaim hub-apiserver",
			"CustomResourceDefinition klusterlets.operator.open-cluster-management.io", "CustomResourceDefinition clustermanagers.operator.open-cluster-management.io"}},
		{Agent, AgentNamespace, works, []string{"CustomResourceDefinition appliedmanifestworks.work.open-cluster-management.io"}},
	} {
		for _, kept := range []bool{true, false} {
			c := must(Load(root, test.chart))(t)
			files := must(Render(c, test.namespace, merged(test.values, map[string]any{"keepData": kept})))(t)
			found := map[string]bool{}
			for _, text := range files {
				for document := range strings.SplitSeq(text, "\n---\n") {
					o := &unstructured.Unstructured{}
					if err := sigsyaml.Unmarshal([]byte(document), &o.Object); err == nil && o.GetAnnotations()[keep] == "keep" {
						found[o.GetKind()+" "+o.GetName()] = true
					}
				}
			}
			for _, name := range test.want {
				if found[name] != kept {
					t.Errorf("keepData=%v: %s is kept: %v", kept, name, found[name])
				}
				delete(found, name)
			}
			if len(found) > 0 {
				t.Errorf("keepData=%v keeps %v", kept, found)
			}
		}
	}
}

func TestValues_Rejected(t *testing.T) {
	for name, test := range map[string]struct {
		chart, values, want string
	}{
		"a misspelt value":           {Hub, `hubApiserver: {replicaz: 1}`, "additional properties 'replicaz' not allowed"},
		"a misspelt component":       {Hub, `hubApiServer: {replicas: 1}`, "additional properties 'hubApiServer' not allowed"},
		"a misspelt image":           {Agent, `image: {tags: v1}`, "additional properties 'tags' not allowed"},
		"a mode that there is not":   {Hub, `etcd: {mode: internal}`, "'/etcd/mode': value must be one of 'embedded', 'external'"},
		"text for a number":          {Hub, `hubControllerManager: {replicas: two}`, "got string, want null or integer"},
		"a digest that is none":      {Hub, `hubApiserver: {image: {digest: latest}}`, "does not match pattern"},
		"an argument that is none":   {Hub, `hubApiserver: {extraArgs: ["v=2"]}`, "does not match pattern"},
		"an unknown APIService":      {Hub, `apiServices: {except: [v9.cluster.open-cluster-management.io]}`, "/apiServices/except/0"},
		"a name of pods":             {Hub, `commonLabels: {app.kubernetes.io/name: x}`, "invalid propertyName 'app.kubernetes.io/name'"},
		"a policy's quote":           {Hub, `hubApiserver: {serviceAccount: {name: "x' || true || 'y"}}`, "does not match pattern"},
		"two with one volume":        {Hub, `hubApiserver: {replicas: 2}`, "Leave it out, or set etcd.mode=external"},
		"an etcd that is nowhere":    {Hub, `etcd: {mode: external}`, "say where the members of the etcd are"},
		"an etcd in the clear":       {Hub, `etcd: {mode: external, external: {endpoints: ["http://etcd:2379"]}}`, "does not match pattern"},
		"a certificate twice":        {Hub, `tls: {existingSecret: x, certManager: {enabled: true}}`, "Set one of them"},
		"a CA of no certificate":     {Hub, `tls: {caBundle: Y2E=}`, "it is the CA of tls.existingSecret"},
		"agents without tokens":      {Hub, `registration: {upstreamAgents: true}`, "Set registration.bootstrap=true as well"},
		"a page without a name":      {Hub, `ui: {enabled: true}`, "ui.hosts: say by which name"},
		"a page for all names":       {Hub, `ui: {enabled: true, hosts: ["*.example.com"]}`, "does not match pattern"},
		"a page without an issuer":   {Hub, `ui: {enabled: true, hosts: [a]}`, "ui.oidc: say where users log in"},
		"a page without a proxy":     {Hub, `ui: {enabled: true, hosts: [a], oidc: {issuerURL: "https://b", clientID: c}}`, "There is no default"},
		"a page with any proxy":      {Hub, `ui: {enabled: true, hosts: [a], oidc: {issuerURL: "https://b", clientID: c}, proxy: {image: {repository: d}}}`, "by its tag or digest"},
		"an issuer in the clear":     {Hub, `ui: {oidc: {issuerURL: "http://b"}}`, "does not match pattern"},
		"a hub without a token":      {Agent, `bootstrap: {server: "https://hub"}`, "a token is missing"},
		"a token without a hub":      {Agent, `bootstrap: {token: abc}`, "say where the hub is"},
		"two tokens":                 {Agent, `bootstrap: {server: "https://hub", token: abc, tokenSecret: {name: x}}`, "Set one of them"},
		"two kubeconfigs":            {Agent, `bootstrap: {server: "https://hub", token: abc, kubeconfig: x}`, "Set either it or them"},
		"a hub in the clear":         {Agent, `bootstrap: {server: "http://hub", token: abc}`, "does not match pattern"},
		"a flag in a name":           {Agent, `clusterName: "c1 --works"`, "does not match pattern"},
		"a second label in a value":  {Agent, `clusterLabels: {a: "b,c=d"}`, "does not match pattern"},
		"namespaces without rights":  {Agent, `works: {namespaces: [a]}`, "say with which rights"},
		"upgrades without works":     {Agent, `works: {upgradable: true}`, "it is works that set the image"},
		"works beside the agent":     {Agent, `works: {role: admin, namespaces: [open-cluster-management-agent]}`, "works can have nothing"},
		"an edge node without works": {Agent, `edge: {enabled: true}`, "Set works.role"},
		"services beside the agent":  {Agent, `{works: {role: admin}, edge: {enabled: true, namespace: open-cluster-management-agent}}`, "could act as the agent"},
		"a scope without a name":     {Agent, `namespaceScoped: true`, "Set it"},
		"a scope that is no team's":  {Agent, `{namespaceScoped: true, clusterName: c1}`, "Install it into a namespace of the team"},
		"roles without clusters":     {Agent, `registration: {auth: awsirsa}`, "needs hubClusterARN and managedClusterARN"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := sigsyaml.Unmarshal([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			_, err := Render(must(Load(root, test.chart))(t), namespaceOf(test.chart, ""), values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.values, err, test.want)
			}
		})
	}
}

// A chart around ours has values of its own for all its charts.
func TestValues_OfParentChart(t *testing.T) {
	for _, chart := range Names {
		values := map[string]any{"enabled": true, "global": map[string]any{"anything": map[string]any{"at": "all"}}}
		if _, err := Render(must(Load(root, chart))(t), namespaceOf(chart, ""), values); err != nil {
			t.Error(err)
		}
	}
}

func TestSchema_RequiresComments(t *testing.T) {
	for name, test := range map[string]struct{ values, want string }{
		"none":             {"a: 1\n", "a: it has no comment"},
		"in a block":       {"# A.\na:\n  b: 1\n", "a.b: it has no comment"},
		"as in an earlier": {"a:\n  # B.\n  b: 1\nc:\n  b: 1\n", ""},
		"null":             {"# A.\na: null\n", "the type of null has to be said"},
		"not JSON":         {"# A.\n# @schema {a}\na: 1\n", "@schema"},
	} {
		if _, _, err := Schema([]byte(test.values), nil); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestPackage(t *testing.T) {
	for version, archive := range map[string]string{"v1.2.3-4-gabcdef": "1.2.3-4-gabcdef", "0123456-dirty": "0.0.0-g0123456-dirty"} {
		dir := t.TempDir()
		if err := Package(root, version, dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range Names {
			c := must(loader.Load(filepath.Join(dir, name+"-"+archive+".tgz")))(t)
			text := ""
			for _, file := range must(Render(c, namespaceOf(name, ""), nil))(t) {
				text += file
			}
			if strings.Contains(text, ":v0.0.0") || !strings.Contains(text, "image: clusterhub/") || !strings.Contains(text, ":"+version+"\n") {
				t.Errorf("%s does not name the images of its version", name)
			}
		}
	}
	if err := Package(root, "a version", t.TempDir()); err == nil || !strings.Contains(err.Error(), "such as v1.2.3") {
		t.Errorf("a version that is none: %v", err)
	}
}
