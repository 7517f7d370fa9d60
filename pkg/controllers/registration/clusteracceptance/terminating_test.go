// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// deleted returns a namespace that another client has deleted, and that waits for its content.
func deleted(namespace *corev1.Namespace) *corev1.Namespace {
	namespace.DeletionTimestamp, namespace.Finalizers = &metav1.Time{Time: start}, []string{"test/content"}
	return namespace
}

// ending returns works of a namespace that are being deleted and wait for the agent, for the agent and others, or for others, and one that stays.
func ending(namespace string) []client.Object {
	work := func(name string, deleted bool, finalizers ...string) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}}
		if deleted {
			w.DeletionTimestamp = &metav1.Time{Time: start}
		}
		return w
	}
	const others = "example.com/others"
	return []client.Object{
		work("agents", true, workv1.ManifestWorkFinalizer), work("both", true, others, workv1.ManifestWorkFinalizer),
		work("others", true, others), work("stays", false, workv1.ManifestWorkFinalizer),
	}
}

// waiting returns the works that wait for an agent.
func (n *namespaces) waiting(t *testing.T) (names []string) {
	t.Helper()
	list := &workv1.ManifestWorkList{}
	if err := n.live.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Items {
		if slices.Contains(w.Finalizers, workv1.ManifestWorkFinalizer) {
			names = append(names, w.Namespace+"/"+w.Name)
		}
	}
	return names
}

// TestNamespace_ReleasesWorksWithoutAgent verifies that the finalizer is removed from works that are being deleted once no agent can
// do so. A denied cluster may be accepted again, so its works wait for that as long as their namespace stays.
func TestNamespace_ReleasesWorksWithoutAgent(t *testing.T) {
	adopted := made("c1")
	adopted.Annotations = nil
	theirs := adopted.DeepCopy()
	theirs.Labels = nil
	leaving := withCondition(newCluster("c1"), registration.ReasonDenied)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: start}, []string{"test/others"}
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		cluster   *clusterv1.ManagedCluster
		released  bool
	}{
		"gone, and the namespace is deleted":      {deleted(made("c1")), nil, true},
		"denied, and the namespace is deleted":    {deleted(made("c1")), withCondition(newCluster("c1"), registration.ReasonDenied), true},
		"gone, with a namespace of others":        {deleted(adopted.DeepCopy()), nil, true},
		"gone":                                    {made("c1"), nil, true},
		"gone, and the namespace of others stays": {adopted, nil, true},
		"denied":                                 {made("c1"), withCondition(newCluster("c1"), registration.ReasonDenied), false},
		"accepted, and the namespace is deleted": {deleted(made("c1")), withCondition(newCluster("c1"), registration.ReasonAccepted), false},
		"accepted, and the hub says so of the namespace": {deleted(made("c1")), accepting(registration.ReasonNamespaceTerminating), false},
		"being denied":  {deleted(made("c1")), withCondition(newCluster("c1"), registration.ReasonError), false},
		"being deleted": {deleted(made("c1")), leaving, false},
		"of no cluster": {deleted(theirs), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			objs := append(ending("c1"), test.namespace)
			if test.cluster != nil {
				objs = append(objs, test.cluster)
			}
			objs = append(objs, ending("c2")...)
			n := newNamespacesOf(t, func(context.Context, string) (string, error) { return "manifestworks stays", nil }, objs...)
			result, err := n.Reconcile(t.Context(), request("c1"))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"c1/stays", "c2/agents", "c2/both", "c2/stays"}
			if !test.released {
				want = slices.Concat([]string{"c1/agents", "c1/both"}, want)
			}
			if got := n.waiting(t); !slices.Equal(got, want) {
				t.Errorf("works that wait for an agent are %q, want %q", got, want)
			}
			if err := n.live.Get(t.Context(), client.ObjectKey{Name: "c1"}, &corev1.Namespace{}); err != nil {
				t.Errorf("the namespace: %v", err)
			}
			// The namespace controller must still delete some.
			if ends := test.released && !test.namespace.DeletionTimestamp.IsZero(); ends && result.RequeueAfter <= 0 {
				t.Errorf("it is not looked at again: %v", result)
			}
		})
	}
}

// accepting returns an accepted cluster for which the hub has not created all that it needs.
func accepting(reason string) *clusterv1.ManagedCluster {
	cluster := withCondition(newCluster("c1"), reason)
	cluster.Spec.HubAcceptsClient = true
	return cluster
}

// TestAccept_ReportsTerminatingNamespace verifies that the condition has a reason of its own, with what the namespace waits for and what to
// do, and that all is created again once the namespace is gone.
func TestAccept_ReportsTerminatingNamespace(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	before := f.has()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	change := func(change func()) {
		t.Helper()
		if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
			t.Fatal(err)
		}
		change()
		status := namespace.Status
		if err := f.client.Update(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		namespace.Status = status
		if len(status.Conditions) > 0 && namespace.DeletionTimestamp.IsZero() {
			if err := f.client.Status().Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		}
	}
	change(func() {
		namespace.Finalizers = []string{"test/content"}
		namespace.Status.Conditions = []corev1.NamespaceCondition{
			{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: x in 3 resource instances"},
			{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "All resources successfully discovered"},
		}
	})
	if err := f.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, b := range roleBindings("c1") { // as the namespace controller deletes them
		if err := f.client.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	f.happened()
	for range 2 {
		if result, err := f.reconcile("c1"); err != nil || result.RequeueAfter <= 0 {
			t.Errorf("%v, %v", result, err)
		}
	}
	got := f.accepted("c1")
	for _, part := range []string{"False NamespaceTerminating", "x in 3 resource instances", "kubectl hub deny --clusters c1"} {
		if !strings.Contains(got, part) {
			t.Errorf("the condition is %q, want %q in it", got, part)
		}
	}
	if strings.Contains(got, "successfully") {
		t.Errorf("the condition is %q, and says what does not matter", got)
	}
	if all := f.happened(); len(all) != 1 || !strings.HasPrefix(all[0], "Warning ") {
		t.Errorf("events: %q, want one", all)
	}

	change(func() { namespace.Finalizers = nil })
	f.settle("c1")
	if after := f.has(); !slices.Equal(after, before) || !strings.HasPrefix(f.accepted("c1"), "True ") {
		t.Errorf("%s: there is\n%s\nwant\n%s", f.accepted("c1"), strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	// A denial does not wait for the namespace.
	change(func() { namespace.Finalizers = []string{"test/content"} })
	if err := f.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	f.change("c1", deny)
	f.settle("c1")
	if got := f.accepted("c1"); !strings.Contains(got, registration.ReasonDenied) {
		t.Errorf("denied: %q", got)
	}
}
