// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
)

// gitops are the examples: the kind that has the values of the chart, and where.
var gitops = map[string]struct {
	kind              string
	values, namespace []string
}{
	"flux.yaml":   {"HelmRelease", []string{"spec", "values"}, []string{"metadata", "namespace"}},
	"argocd.yaml": {"Application", []string{"spec", "source", "helm", "valuesObject"}, []string{"spec", "destination", "namespace"}},
}

// TestGitOps_ExampleValuesJoin: with exactly these values, the agent knows its name, its labels, and the way to its hub.
func TestGitOps_ExampleValuesJoin(t *testing.T) {
	for name, example := range gitops {
		t.Run(name, func(t *testing.T) {
			var values map[string]any
			namespace := ""
			for _, o := range decoded(t, string(must(os.ReadFile(filepath.Join(root, "examples", "gitops", name)))(t))) {
				if o.GetKind() == example.kind {
					values, _, _ = unstructured.NestedMap(o.Object, example.values...)
					namespace, _, _ = unstructured.NestedString(o.Object, example.namespace...)
				}
			}
			if len(values) == 0 || namespace != AgentNamespace {
				t.Fatalf("the values are %v, for the namespace %q", values, namespace)
			}
			all := objects(t, Agent, namespace, values)
			joins(t, all)
			var bound []string
			for _, o := range all {
				if o.GetKind() == "Secret" {
					t.Errorf("the Secret %s is in Git", o.GetName())
				}
				if o.GetKind() == "RoleBinding" && o.GetName() == "clusterhub:hub-agent-works-rights" {
					bound = append(bound, o.GetNamespace())
				}
			}
			if !slices.Equal(bound, []string{"team-a", "team-b"}) {
				t.Errorf("works have rights in %v", bound)
			}
		})
	}
}

// joins wants an agent that comes to the hub as c1, with the token that is in the Secret hub-token.
func joins(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	var pod appsv1.Deployment
	kubeconfig := ""
	for _, o := range all {
		switch o.GetKind() {
		case "Deployment":
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &pod, true); err != nil {
				t.Fatal(err)
			}
		case "ConfigMap":
			kubeconfig, _, _ = unstructured.NestedString(o.Object, "data", "kubeconfig")
		}
	}
	args := pod.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--cluster-name=c1", "--cluster-labels=environment=production", "--works", "--bootstrap-kubeconfig=/etc/hub-agent/bootstrap/kubeconfig"} {
		if !slices.Contains(args, want) {
			t.Errorf("the agent lacks %s: %q", want, args)
		}
	}
	config := must(clientcmd.Load([]byte(kubeconfig)))(t)
	hub, user := config.Clusters["hub"], config.AuthInfos["hub"]
	if hub == nil || hub.Server != "https://hub.example.com" || len(hub.CertificateAuthorityData) == 0 || user == nil || user.TokenFile != "token" || user.Token != "" {
		t.Errorf("it comes to the hub by %s", kubeconfig)
	}
	mounted := pod.Spec.Template.Spec.Volumes[0].Projected.Sources[1].Secret
	if mounted.Name != "hub-token" || mounted.Items[0].Key != "token" || mounted.Items[0].Path != user.TokenFile {
		t.Errorf("its token is from %+v", mounted)
	}
}
