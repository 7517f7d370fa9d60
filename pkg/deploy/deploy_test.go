// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type deployed interface {
	Objects() ([]*unstructured.Unstructured, error)
	Split(namespace string) (served, management []*unstructured.Unstructured, err error)
}

func objectsOf(t *testing.T, what interface {
	Objects() ([]*unstructured.Unstructured, error)
}) []*unstructured.Unstructured {
	t.Helper()
	objects, err := what.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// all returns everything that can be deployed, with all options.
func all(t *testing.T) map[string][]*unstructured.Unstructured {
	return map[string][]*unstructured.Unstructured{
		"a hub":                   objectsOf(t, Hub{Components: slices.DeleteFunc(Components(), func(c string) bool { return c == "manual-certificates" })}),
		"a hub on its own etcd":   objectsOf(t, Hub{ExternalEtcd: true}),
		"a hub without approver":  objectsOf(t, Hub{Components: []string{"manual-certificates"}}),
		"a provider":              objectsOf(t, ClusterProvider{}),
		"bootstrap":               Bootstrap(true),
		"an agent":                objectsOf(t, Agent{Image: "i", Hub: "h"}),
		"an agent of works":       objectsOf(t, Agent{Image: "i", Hub: "h", Works: Works{Role: "admin"}}),
		"an agent of a namespace": objectsOf(t, Agent{Image: "i", Hub: "h", Namespace: "team-a", Scoped: true}),
		"a klusterlet":            objectsOf(t, klusterlets()["Default"]),
		"a klusterlet in one":     objectsOf(t, klusterlets()["SingletonHosted"]),
	}
}

func text(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	data, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestObjects_AreInOrderOfCreation: no object must be created again because another one did not exist yet.
func TestObjects_AreInOrderOfCreation(t *testing.T) {
	for what, objects := range all(t) {
		at := map[string]int{}
		for i, o := range objects {
			at[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = i
		}
		tried := 0
		before := func(i int, kind, namespace, name string) {
			first, ok := at[kind+" "+namespace+"/"+name]
			if ok {
				tried++
			}
			if first > i {
				t.Errorf("%s: %s is made before %s %s", what, identity(objects[i]), kind, name)
			}
		}
		stage := 0
		for i, o := range objects {
			if o.GetNamespace() != "" {
				before(i, "Namespace", "", o.GetNamespace())
			}
			if role, ok, _ := unstructured.NestedStringMap(o.Object, "roleRef"); ok {
				namespace := ""
				if role["kind"] == "Role" {
					namespace = o.GetNamespace()
				}
				before(i, role["kind"], namespace, role["name"])
			}
			now := slices.Index([]string{"Deployment", "APIService"}, o.GetKind()) + 1
			if now < stage {
				t.Errorf("%s: %s is made after pods that may need it, or APIServices before the pods that serve them", what, identity(o))
			}
			stage = max(stage, now)
		}
		if tried == 0 {
			t.Errorf("%s: nothing needs anything else", what)
		}
	}
}

var image = regexp.MustCompile(`"image":"([^"]*)"`)

func TestChanges_Images(t *testing.T) {
	images := map[string]string{"clusterhub/hub-apiserver": "r:5000/a@sha256:1", "clusterhub/hub-controller-manager": "r:5000/c:v2"}
	got := map[string]int{}
	for _, match := range image.FindAllStringSubmatch(text(t, objectsOf(t, Hub{Changes: Changes{Images: images}})), -1) {
		got[match[1]]++
	}
	if want := map[string]int{"r:5000/a@sha256:1": 1, "r:5000/c:v2": 2}; !maps.Equal(got, want) {
		t.Errorf("the images are %v, want %v", got, want)
	}
	// The init container has it, too.
	provider := text(t, objectsOf(t, ClusterProvider{Changes: Changes{Images: map[string]string{"clusterhub/cluster-provider": "p:v2"}}}))
	if strings.Count(provider, `"image":"p:v2"`) != 2 || strings.Contains(provider, "v0.0.0") {
		t.Error("the images of the provider are not those that were asked for")
	}
	if agent := text(t, objectsOf(t, Agent{Image: "r:5000/agent:v2"})); !strings.Contains(agent, `"image":"r:5000/agent:v2"`) {
		t.Error("the image of the agent is not what was asked for")
	}
}

// TestChanges_Names: a name is changed everywhere, and nothing else is: changed back, everything is as before.
func TestChanges_Names(t *testing.T) {
	for what, test := range map[string]struct {
		names map[string]string
		of    func(names map[string]string) deployed
	}{
		"a hub": {
			map[string]string{"clusterhub-system": "blue", "clusterhub:hub-apiserver": "clusterhub:blue:server"},
			func(names map[string]string) deployed {
				return Hub{ExternalEtcd: true, Components: Components(), Changes: Changes{Names: names}}
			},
		},
		"a provider": {
			map[string]string{"cluster-provider-kubeconfig": "provider-green", "openmcp-system": "green"},
			func(names map[string]string) deployed { return ClusterProvider{Changes: Changes{Names: names}} },
		},
		"an agent": {
			map[string]string{"open-cluster-management-agent": "k1-agent", "clusterhub:hub-agent": "clusterhub:k1"},
			func(names map[string]string) deployed { return Agent{Names: names} },
		},
	} {
		was, is := text(t, objectsOf(t, test.of(nil))), text(t, objectsOf(t, test.of(test.names)))
		var back []string
		for from, to := range test.names {
			// The name of a role can be a prefix of another one's.
			if strings.Contains(is, from) && (!strings.Contains(from, ":") || strings.Contains(is, `"`+from+`"`)) {
				t.Errorf("%s: something is still called %s", what, from)
			}
			if strings.Contains(was, to) || !strings.Contains(was, from) {
				t.Fatalf("%s: something was called %s before, or nothing %s", what, to, from)
			}
			back = append(back, to, from)
		}
		if got := strings.NewReplacer(back...).Replace(is); got != was {
			t.Errorf("%s: more than names has changed", what)
		}
	}
}

func TestObjects_RejectUnknown(t *testing.T) {
	for want, what := range map[string]deployed{
		`there is no component "base": it must be one of auto-approval, aws-auth, bootstrap, leftovers, manual-certificates, per-cluster-roles, upstream-agents`: Hub{Components: []string{"base"}},
		`there is no component "../examples"`: Hub{Components: []string{"../examples"}},
		"with the name clusterhub ":           Hub{Changes: Changes{Names: map[string]string{"clusterhub": "b"}}},
		"with the name hub-apiserver:v0.0.0 ": Hub{Changes: Changes{Images: map[string]string{"hub-apiserver:v0.0.0": "i"}}},
		"with the name clusterhub-system ":    Agent{Names: map[string]string{"clusterhub-system": "b"}},
	} {
		if _, err := what.Objects(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestSplit_AssignsEachKind lists the kinds on each side. No object is lost, and each side has what it refers to.
func TestSplit_AssignsEachKind(t *testing.T) {
	const both = "Namespace ServiceAccount "
	for what, test := range map[string]struct {
		deployed
		served, management string
	}{
		"a hub": {Hub{Components: Components()}, both + "APIService ClusterRole ClusterRoleBinding FlowSchema PriorityLevelConfiguration Role RoleBinding " +
			"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
			both + "Deployment NetworkPolicy PersistentVolumeClaim PodDisruptionBudget ResourceQuota Service"},
		"a provider": {ClusterProvider{}, both + "ClusterRoleBinding Role RoleBinding ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
			both + "Deployment NetworkPolicy PodDisruptionBudget"},
		"an agent": {Agent{}, both + "ClusterRole ClusterRoleBinding", both + "Deployment NetworkPolicy Role RoleBinding Secret"},
		"an agent of works": {Agent{Works: Works{Role: "admin"}}, both + "ClusterRole ClusterRoleBinding CustomResourceDefinition",
			both + "Deployment NetworkPolicy Role RoleBinding Secret"},
	} {
		objects := objectsOf(t, test.deployed)
		served, management, err := test.Split("")
		if err != nil {
			t.Fatal(err)
		}
		for side, want := range map[string]string{"served": test.served, "management": test.management} {
			has := map[string]bool{}
			for _, o := range map[string][]*unstructured.Unstructured{"served": served, "management": management}[side] {
				has[o.GetKind()] = true
			}
			if got, want := slices.Sorted(maps.Keys(has)), strings.Fields(want); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: the %s cluster has the kinds %q, want %q", what, side, got, want)
			}
		}
		// Together both sides have all objects, and what is on both sides is equal.
		union := slices.Clone(served)
		for _, o := range management {
			if !strings.Contains(both, o.GetKind()+" ") {
				union = append(union, o)
			} else if !slices.ContainsFunc(served, func(s *unstructured.Unstructured) bool {
				return text(t, []*unstructured.Unstructured{s}) == text(t, []*unstructured.Unstructured{o})
			}) {
				t.Errorf("%s: %s is not the same on both sides", what, identity(o))
			}
		}
		compare(t, what, union, objects)

		again, elsewhere, err := test.Split("elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		compare(t, what+" that runs elsewhere, where it is served", again, served)
		if len(elsewhere) != len(management) {
			t.Errorf("%s: %d objects elsewhere, and %d else", what, len(elsewhere), len(management))
		}
		checkManagement(t, what, elsewhere)
	}
}

// checkManagement verifies that there is one namespace that has all objects, that the account and volumes of each pod exist, and that no subject from
// elsewhere has rights.
func checkManagement(t *testing.T, what string, management []*unstructured.Unstructured) {
	t.Helper()
	if management[0].GetKind() != "Namespace" || management[0].GetName() != "elsewhere" {
		t.Fatalf("%s: the first object is %s", what, identity(management[0]))
	}
	has := map[string]bool{}
	for _, o := range management[1:] {
		has[o.GetKind()+" "+o.GetName()] = true
		if o.GetNamespace() != "elsewhere" {
			t.Errorf("%s: %s is not where the pods are", what, identity(o))
		}
		subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
		for _, subject := range subjects {
			if account := subject.(map[string]any); account["namespace"] != "elsewhere" {
				t.Errorf("%s: %s gives rights to %v", what, identity(o), account)
			}
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		pod, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
		if account := "ServiceAccount " + pod["serviceAccountName"].(string); !has[account] {
			t.Errorf("%s: there is no %s before %s", what, account, identity(o))
		}
		volumes, _ := pod["volumes"].([]any)
		for _, volume := range volumes {
			claim, ok, _ := unstructured.NestedString(volume.(map[string]any), "persistentVolumeClaim", "claimName")
			if ok && !has["PersistentVolumeClaim "+claim] {
				t.Errorf("%s: there is no claim %s", what, claim)
			}
		}
	}
}

// TestSplit_NamespaceOfPodsOnHub: the namespace in which a hub's servers run differs from the one they work in, the hub's own.
func TestSplit_NamespaceOfPodsOnHub(t *testing.T) {
	_, management, err := Hub{}.Split("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--leader-elect-namespace=clusterhub-system", "--service-namespace=clusterhub-system"} {
		if !strings.Contains(text(t, management), flag) {
			t.Errorf("no pod has the flag %s", flag)
		}
	}
}
