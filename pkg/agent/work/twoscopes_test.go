// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestTwoScopes: an agent of the whole cluster and one of a namespace, of two ManagedClusters, both have works with the same object. The agent of the
// whole cluster has priority, and the other one reports that; they do not overwrite each other's writes, and neither prunes the other objects of the
// other.
func TestTwoScopes(t *testing.T) {
	team, whole := newNamespaceWorld(t), newSerialWorld(t)
	whole.namespace = team.namespace
	team.start(team.newAgent())
	stop := whole.start(whole.newAgent())
	team.put("a", team.spec(team.configMap("both", "{of: team}"), team.configMap("team", "{}")))
	team.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	whole.put("a", whole.spec(whole.configMap("both", "{of: whole}"), whole.configMap("whole", "{}")))
	whole.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	team.eventuallySaid("a", workv1.WorkApplied, "False: False True")
	if got := team.message("a", 0, workv1.ManifestApplied); !strings.Contains(got, "of an agent of the whole cluster, which had it first") {
		t.Errorf("it says %q", got)
	}
	team.eventuallyIdle()
	whole.eventuallyIdle()
	if got := team.data("both"); got != "map[of:whole]" {
		t.Errorf("it is %s", got)
	}

	t.Log("A work cannot change what the other agent remembers, nor its identity")
	for i, manifest := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: " + team.recordTarget("a").Name + ", namespace: " + team.namespace + "}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: hub-kubeconfig-secret, namespace: " + team.namespace + "}}",
	} {
		name := string(rune('m' + i))
		whole.put(name, whole.spec(manifest))
		whole.eventuallySaid(name, workv1.WorkApplied, "False: False")
		if got := whole.message(name, 0, workv1.ManifestApplied); !strings.Contains(got, "is the agent's own") {
			t.Errorf("it says %q", got)
		}
	}

	t.Log("When one goes, the other has it, and all else is as it was")
	uid := team.get(team.target("team")).GetUID()
	whole.delete("a")
	whole.eventuallyGone("a")
	team.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	team.eventually("what both want", "map[of:team]", func() string { return team.data("both") })
	if whole.data("whole") != "<none>" || team.get(team.target("team")).GetUID() != uid {
		t.Error("something is left, or was made anew")
	}
	whole.put("b", whole.spec(whole.configMap("whole", "{}")))
	whole.eventuallySaid("b", workv1.WorkApplied, "True: True")
	team.delete("a")
	team.eventuallyGone("a")
	if team.data("both")+team.data("team") != "<none><none>" || whole.data("whole") == "<none>" {
		t.Errorf("there are %s %s %s", team.data("both"), team.data("team"), whole.data("whole"))
	}
	stop()
}

// TestSharedByWorks: a cluster-scoped object stays as long as any work lists it, even if the works desire different states: deleting and creating a
// CustomResourceDefinition or a Namespace again would delete everything in it.
func TestSharedByWorks(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	group := w.namespace + ".example.com"
	definition := func(label string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.` + group + `, labels: {of: ` + label + `}},
spec: {group: ` + group + `, scope: Namespaced, names: {kind: Widget, plural: widgets},
versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	}
	role := func(verb string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + w.namespace + "}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [" + verb + "]}]}"
	}
	both := []apply.Target{
		{GroupVersionResource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Name: "widgets." + group},
		{GroupVersionResource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Name: w.namespace},
	}
	t.Cleanup(func() {
		for _, target := range both {
			_ = w.client.Resource(target.GroupVersionResource).Delete(context.Background(), target.Name, metav1.DeleteOptions{})
		}
	})
	w.put("first", w.spec(definition("first"), role("get")))
	w.eventuallySaid("first", workv1.WorkApplied, "True: True True")
	w.put("second", w.spec(definition("second"), role("list")))
	w.eventuallySaid("second", workv1.WorkApplied, "False: False False")
	if got := w.message("second", 0, workv1.ManifestApplied); !strings.Contains(got, "ManifestWork first, which had it first") {
		t.Errorf("it says %q", got)
	}
	w.put("third", w.spec(definition("first")))
	w.eventuallySaid("third", workv1.WorkApplied, "True: True")
	w.eventuallyIdle()
	uids := []string{}
	for _, target := range both {
		have := w.get(target)
		uids = append(uids, string(have.GetUID()))
		if have.GetLabels()["of"] == "second" {
			t.Error("the second has its way")
		}
	}
	w.delete("first")
	w.eventuallyGone("first")
	// It had the object before the third.
	w.eventuallySaid("second", workv1.WorkApplied, "True: True True")
	w.delete("third")
	w.eventuallyGone("third")
	for i, target := range both {
		if have := w.get(target); have == nil || string(have.GetUID()) != uids[i] || len(have.GetOwnerReferences()) != 1 {
			t.Errorf("%s was made anew, or belongs to others: %v", target, have)
		}
	}
	if got := w.get(both[0]).GetLabels()["of"]; got != "second" {
		t.Errorf("it is that of the %s", got)
	}
	w.delete("second")
	w.eventuallyGone("second")
	for _, target := range both {
		if w.get(target) != nil {
			t.Errorf("%s is left", target)
		}
	}
}
