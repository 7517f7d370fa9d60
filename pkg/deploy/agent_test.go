// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestBootstrap_ExactRights: the holder of a bootstrap token has these rights, and no more.
func TestBootstrap_ExactRights(t *testing.T) {
	clusters, requests := []string{"cluster.open-cluster-management.io"}, []string{"certificates.k8s.io"}
	always := []rbacv1.PolicyRule{
		{APIGroups: clusters, Resources: []string{"managedclusters"}, Verbs: []string{"create"}},
		{APIGroups: clusters, Resources: []string{"managedclusters/label"},
			ResourceNames: []string{"cluster.open-cluster-management.io/clusterset:default"}, Verbs: []string{"create"}},
		{APIGroups: requests, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"}},
	}
	upstream := []rbacv1.PolicyRule{
		{APIGroups: clusters, Resources: []string{"managedclusters"}, Verbs: []string{"get"}},
		{APIGroups: requests, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
	}
	public := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
		ResourceNames: []string{"cluster-info", "kube-root-ca.crt"}}}
	for agents, test := range map[string]struct {
		upstream     bool
		want, public []rbacv1.PolicyRule
	}{"hub-agent": {false, always, nil}, "upstream's agents": {true, slices.Concat(always, upstream), public}} {
		var got, inPublic []rbacv1.PolicyRule
		for _, o := range Bootstrap(test.upstream) {
			switch o.GetKind() {
			case "ClusterRole":
				role := &rbacv1.ClusterRole{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				got = append(got, role.Rules...)
			case "Role":
				role := &rbacv1.Role{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				inPublic = append(inPublic, role.Rules...)
				if role.Namespace != metav1.NamespacePublic {
					t.Errorf("there is a role in %s", role.Namespace)
				}
			case "ServiceAccount":
				if got := "system:serviceaccount:" + o.GetNamespace() + ":" + o.GetName(); got != registration.BootstrapServiceAccount {
					t.Errorf("the service account is %s", got)
				}
			}
			// Upstream's operator writes roles with these names, with the rules for upstream's agents.
			if strings.HasPrefix(o.GetName(), "open-cluster-management:") {
				t.Errorf("%s %s is upstream's", o.GetKind(), o.GetName())
			}
		}
		if !reflect.DeepEqual(got, test.want) || !reflect.DeepEqual(inPublic, test.public) {
			t.Errorf("for %s the rules are %+v and %+v, want %+v and %+v", agents, got, inPublic, test.want, test.public)
		}
	}
}

func TestAgent_ObjectsAreLabeledAndNamespaced(t *testing.T) {
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

// TestAgent_RestartsForOtherHub: the pods are recreated if, and only if, the access to the hub changes: an agent reads it when it starts.
func TestAgent_RestartsForOtherHub(t *testing.T) {
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

// TestAgent_NamespacedStaysInNamespace: whatever the name of the namespace, all objects are in it: none is cluster-scoped, and no right extends outside.
func TestAgent_NamespacedStaysInNamespace(t *testing.T) {
	for _, namespace := range []string{"team-a", "hub-agent", registration.AgentNamespace} {
		objects := objectsOf(t, Agent{Image: "i", Hub: "h", Args: []string{ClusterNameFlag + "c1"}, Namespace: namespace, Scoped: true})
		kinds := map[string]int{}
		for _, o := range objects {
			kinds[o.GetKind()]++
			if o.GetNamespace() != namespace || o.GetLabels()[LabelScope] != ScopeNamespace || o.GetLabels()[LabelManagedBy] != ManagedBy {
				t.Errorf("%s has the labels %v", identity(o), o.GetLabels())
			}
			role, bound, _ := unstructured.NestedStringMap(o.Object, "roleRef")
			if bound && (o.GetKind() != "RoleBinding" || role["kind"] == "ClusterRole" && role["name"] != "admin") {
				t.Errorf("%s gives %v", identity(o), role)
			}
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, subject := range subjects {
				if s := subject.(map[string]any); s["name"] != registration.AgentServiceAccount || s["namespace"] != namespace {
					t.Errorf("%s is for %v", identity(o), s)
				}
			}
		}
		want := map[string]int{"ServiceAccount": 1, "Role": 1, "RoleBinding": 2, "Secret": 1, "NetworkPolicy": 1, "Deployment": 1}
		if !maps.Equal(kinds, want) {
			t.Errorf("it has %v, want %v", kinds, want)
		}
		args := `"--namespace-scoped","--works","--edge","--cluster-name=c1","--namespace=` + namespace + `","--agent-id=` + namespace + `"]`
		if !strings.Contains(text(t, objects), args) {
			t.Errorf("the agent does not have the flags %s", args)
		}
	}
	if _, err := (Agent{Scoped: true, Works: Works{Role: "cluster-admin"}}).Objects(); err == nil {
		t.Error("it has other rights for works")
	}
}

// TestAgent_OtherNamespace: an agent of the whole cluster can also be in another namespace, and its flags say so.
func TestAgent_OtherNamespace(t *testing.T) {
	objects := objectsOf(t, Agent{Image: "i", Hub: "h", Namespace: "agents", Works: Works{Role: "admin"}})
	deployed := text(t, objects)
	if !strings.Contains(deployed, `"--namespace=agents","--works","--agent-id=agents"]`) || strings.Contains(deployed, registration.AgentNamespace) ||
		strings.Contains(deployed, LabelScope) {
		t.Errorf("it is %s", deployed)
	}
}
