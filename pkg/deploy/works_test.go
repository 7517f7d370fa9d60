// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// bindings returns the bindings that grant rights to the objects of works, as "kind namespace/name role".
func bindings(objects []*unstructured.Unstructured) (all []string) {
	for _, o := range objects {
		role, bound, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		if bound && (o.GetName() == WorksRights || o.GetName() == worksNamespaces) {
			all = append(all, strings.TrimPrefix(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+" "+role, "/"))
		}
	}
	return all
}

func TestWorks_HaveDeclaredRights(t *testing.T) {
	everywhere := "ClusterRoleBinding /" + worksNamespaces + " " + worksNamespaces
	for name, test := range map[string]struct {
		works Works
		want  []string
	}{
		"none":          {},
		"admin":         {Works{Role: "admin"}, []string{"ClusterRoleBinding /" + WorksRights + " admin", everywhere}},
		"cluster-admin": {Works{Role: "cluster-admin"}, []string{"ClusterRoleBinding /" + WorksRights + " cluster-admin", everywhere}},
		"two namespaces": {Works{Role: "admin", Namespaces: []string{"a", "hub-agent"}},
			[]string{"RoleBinding a/" + WorksRights + " admin", "RoleBinding hub-agent/" + WorksRights + " admin"}},
	} {
		agent := Agent{Image: "i", Hub: "h", Args: []string{"--cluster-name=c1"}, Works: test.works}
		objects := objectsOf(t, agent)
		if got := bindings(objects); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		for _, o := range objects {
			if o.GetLabels()[LabelManagedBy] != ManagedBy {
				t.Errorf("%s: %s would be left behind", name, identity(o))
			}
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			for _, subject := range subjects {
				if s := subject.(map[string]any); s["name"] != registration.AgentServiceAccount || s["namespace"] != registration.AgentNamespace {
					t.Errorf("%s: %s is for %v", name, identity(o), s)
				}
			}
		}
		deployed := text(t, objects)
		on := test.works.Role != ""
		if has := strings.Contains(deployed, `"--cluster-name=c1","--works","--agent-id=`+registration.AgentNamespace+`"]`); has != on {
			t.Errorf("%s: the agent has the flags: %t", name, has)
		}
		if has := strings.Contains(deployed, `"CustomResourceDefinition"`) && strings.Contains(deployed, `"clusterhub:hub-agent-works"`); has != on {
			t.Errorf("%s: the agent has where to remember: %t", name, has)
		}
		if last := objects[len(objects)-1]; last.GetKind() != "Deployment" {
			t.Errorf("%s: %s comes after the pods that need it", name, identity(last))
		}
	}
}

// TestWorks_AgentWithOtherNames: a namespace of works is where an admin specifies it, whatever the names of the agent's own objects; and two
// agents of a cluster have two IDs.
func TestWorks_AgentWithOtherNames(t *testing.T) {
	agent := Agent{Image: "i", Hub: "h", Works: Works{Role: "admin", Namespaces: []string{registration.AgentNamespace, "a"}},
		Names: map[string]string{registration.AgentNamespace: "other", WorksRights: "rights"}}
	objects := objectsOf(t, agent)
	var in []string
	for _, o := range objects {
		if o.GetName() == "rights" {
			in = append(in, o.GetKind()+" "+o.GetNamespace())
		}
	}
	if want := []string{"RoleBinding " + registration.AgentNamespace, "RoleBinding a"}; !slices.Equal(in, want) {
		t.Errorf("the rights are %q, want %q", in, want)
	}
	if !strings.Contains(text(t, objects), `"--agent-id=other"`) {
		t.Error("the agent has the ID of another one")
	}
}

// TestSplit_RightsOfWorksAreOnManagedCluster: rights in namespaces are rights on the managed cluster: the cluster that runs the agent never
// has them.
func TestSplit_RightsOfWorksAreOnManagedCluster(t *testing.T) {
	for _, works := range []Works{{Role: "admin"}, {Role: "cluster-admin", Namespaces: []string{"a", "b"}}} {
		agent := Agent{Image: "i", Hub: "h", Works: works}
		managed, management, err := agent.Split("elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := bindings(managed), bindings(objectsOf(t, agent)); !slices.Equal(got, want) {
			t.Errorf("the managed cluster has %q, want %q", got, want)
		}
		checkManagement(t, "an agent of works", management)
		for _, o := range management {
			if strings.Contains(o.GetName(), "works") {
				t.Errorf("%s is on the cluster that runs the agent", identity(o))
			}
		}
	}
}
