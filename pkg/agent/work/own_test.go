// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// An agent whose secrets are in another namespace of the same cluster has two namespaces of its own. The second one has the kubeconfig of an admin:
// works may name nothing in it, even if they are limited to this namespace.
func TestOwn_IncludesNamespaceOfSecrets(t *testing.T) {
	target := func(resource, namespace, name string) apply.Target {
		return apply.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Namespace: namespace, Name: name}
	}
	both, one := Own{Namespace: "managed", Home: "home"}, Own{Namespace: "managed"}
	for _, test := range []struct {
		target           apply.Target
		only             string
		ofBoth, ofTheOne bool
	}{
		{target("namespaces", "", "home"), "", true, false},
		{target("namespaces", "", "managed"), "", true, true},
		{target("namespaces", "", "other"), "", false, false},
		{target("namespaces", "", ""), "", false, false},
		{target("secrets", "home", "external-managed-kubeconfig"), "", true, false},
		{target("pods", "home", "x"), "", true, false},
		{target("pods", "home", "x"), "home", true, false},
		{target("pods", "managed", "x"), "", true, true},
		{target("pods", "managed", "x"), "managed", false, false},
		{target("nodes", "", "home"), "", false, false},
		{target("secrets", "other", "hub-kubeconfig-secret"), "", true, true},
		{target("secrets", "other", "x"), "", false, false},
		{target("configmaps", "other", "work-record-x"), "", true, true},
	} {
		if got := both.has(test.target, test.only); got != test.ofBoth {
			t.Errorf("%s is the agent's: %t (works only for %q)", test.target, got, test.only)
		}
		if got := one.has(test.target, test.only); got != test.ofTheOne {
			t.Errorf("with one namespace, %s is the agent's: %t (works only for %q)", test.target, got, test.only)
		}
	}
}

// Works of an agent that has one namespace may have any objects in it, apart from the agent's own.
func TestOwn_IncludesDeploymentInNamespace(t *testing.T) {
	deployed, err := deploy.Agent{Image: "i", Hub: "h", Namespace: "team", Scoped: true}.Objects()
	if err != nil || len(deployed) < 6 {
		t.Fatalf("there are %d objects: %v", len(deployed), err)
	}
	own := Own{Namespace: "team"}
	for _, o := range deployed {
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		target := apply.Target{GroupVersionResource: resource, Namespace: o.GetNamespace(), Name: o.GetName()}
		if !own.has(target, "team") {
			t.Errorf("a work may name %s", target)
		}
		target.Name = "theirs"
		if own.has(target, "team") {
			t.Errorf("no work may name %s", target)
		}
	}
}
