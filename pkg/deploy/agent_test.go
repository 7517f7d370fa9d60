// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Whoever reads this list has read what somebody can do who found a bootstrap token.
func TestBootstrap_GivesExactlyTheseRights(t *testing.T) {
	t.Run("to hub-agent", func(t *testing.T) { checkBootstrap(t, false, []string{"create"}, "create", "get") })
	t.Run("to upstream's agents", func(t *testing.T) {
		checkBootstrap(t, true, []string{"create", "get"}, "create", "get", "list", "watch")
	})
}

func checkBootstrap(t *testing.T, listCSRs bool, onClusters []string, onCSRs ...string) {
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: onClusters},
		{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters/label"},
			ResourceNames: []string{"cluster.open-cluster-management.io/clusterset:default"}, Verbs: []string{"create"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: onCSRs},
	}
	roles := 0
	for _, o := range Bootstrap(listCSRs) {
		switch o.GetKind() {
		case "ClusterRole":
			roles++
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(role.Rules, want) {
				t.Errorf("the rules are %+v", role.Rules)
			}
		case "ServiceAccount":
			if got := "system:serviceaccount:" + o.GetNamespace() + ":" + o.GetName(); got != registration.BootstrapServiceAccount {
				t.Errorf("the service account is %s", got)
			}
		}
	}
	if roles != 1 {
		t.Errorf("%d roles", roles)
	}
}

func TestAgent_IsAllLabelledAndInItsNamespace(t *testing.T) {
	clusterWide := []string{"Namespace", "ClusterRole", "ClusterRoleBinding"}
	objects, err := Agent{Image: "i", Hub: "a"}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetLabels()[LabelManagedBy] != ManagedBy {
			t.Errorf("%s %s would be left behind", o.GetKind(), o.GetName())
		}
		if !slices.Contains(clusterWide, o.GetKind()) && o.GetNamespace() != registration.AgentNamespace {
			t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		for kind, name := range map[string]string{
			"Secret": registration.BootstrapSecret, "ServiceAccount": registration.AgentServiceAccount,
		} {
			if o.GetKind() == kind && o.GetName() != name {
				t.Errorf("the %s is called %s", kind, o.GetName())
			}
		}
	}
}

// The pods are made anew if, and only if, the hub is reached in another way: an agent reads that when it starts.
func TestAgent_StartsAnewForAnotherHub(t *testing.T) {
	template := func(a Agent) string {
		objects, err := a.Objects()
		if err != nil {
			t.Fatal(err)
		}
		spec, _, err := unstructured.NestedMap(objects[len(objects)-1].Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := template(Agent{Image: "i", Hub: "a", Kubeconfig: []byte("token 1")})
	if first != template(Agent{Image: "i", Hub: "a", Kubeconfig: []byte("token 2")}) {
		t.Error("another token makes another pod")
	}
	if first == template(Agent{Image: "i", Hub: "b", Kubeconfig: []byte("token 1")}) {
		t.Error("another hub makes no other pod")
	}
}
