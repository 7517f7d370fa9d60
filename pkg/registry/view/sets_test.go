// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// The tests of members also apply to sets, which use the same code: churn_test.go has both. Here are the tests that only sets need.

func TestSets_OfUser(t *testing.T) {
	h := twoSets(t)
	h.set("a-b", nil)
	h.front.allow("ann", "a", "gone")
	h.front.allow("group:team", "b")
	h.front.allow("eve", "*")
	_, sets, _ := h.wholeReplica()
	for who, want := range map[string][]string{"ann": {"a"}, "eve": {"a-b", "a", "b"}, "stranger": nil} {
		h.client(sets, someone(who)).awaitNames(want...)
	}
	h.client(sets, someone("ann", "team")).awaitNames("a", "b")
	expectNames(t, h.client(sets, admin).names(), "a-b", "a", "b")

	got, err := sets.Get(as(t.Context(), someone("ann")), "a", &metav1.GetOptions{})
	must(t, err)
	if set := got.(*cluster.ManagedClusterSet); set.Name != "a" || set.UID == "" || set.Spec.ClusterSelector.LabelSelector == nil {
		t.Errorf("got %+v", set)
	}
	for _, name := range []string{"b", "nowhere"} {
		if _, err := sets.Get(as(t.Context(), someone("ann")), name, &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("get of %s: %v, want a 403 whether or not the set exists", name, err)
		}
	}
	for _, name := range []string{"gone", "a/b", ".."} {
		if _, err := sets.Get(as(t.Context(), someone("ann")), name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of %s: %v, want a 404", name, err)
		}
	}
}

func TestSets_PagesAreOfOneVersion(t *testing.T) {
	h := newHub(t)
	want := []string{"a", "b", "c", "d"}
	for _, name := range append(want, "hidden") {
		h.set(name, nil)
	}
	h.front.allow("ann", want...)
	_, sets, _ := h.wholeReplica()
	ann := h.client(sets, someone("ann"))
	ann.awaitNames(want...)
	var got []string
	page := ann.list(limit(2))
	first := page.ResourceVersion
	h.deleteSet("d")
	for {
		got = append(got, namesOf(page)...)
		if page.Continue == "" {
			break
		}
		page = ann.list(limit(2), continued(page.Continue))
	}
	expectNames(t, got, want...)
	expectNames(t, ann.names(), "a", "b", "c")
	expectNames(t, ann.names(exactly(first)), want...)
	expectNames(t, ann.names(byFields("metadata.name=b")), "b")
	expectNames(t, ann.names(byFields("metadata.name=hidden")))
	expectNames(t, ann.names(byFields("metadata.name!=b")), "a", "c")
}

func TestSets_WatchFollowsSetsAndRights(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	_, sets, _ := h.wholeReplica()
	ann := h.client(sets, someone("ann"))
	ann.awaitNames("a")
	informer := ann.watch(initialEvents)
	informer.expectInitial("a")
	h.changeSet("b", labelled("x=y")) // ann may not get it
	changed := h.changeSet("a", labelled("x=y"))
	got := informer.expect("MODIFIED a")[0]
	object := got.Object
	if shared, ok := object.(runtime.CacheableObject); ok {
		object = shared.GetObject()
	}
	if set := object.(*cluster.ManagedClusterSet); set.Generation != changed.Generation || set.Spec.ClusterSelector.LabelSelector.MatchLabels["x"] != "y" {
		t.Errorf("got %+v", set)
	}
	h.front.allow("ann", "a", "b")
	informer.expect("ADDED b")
	h.front.allow("ann", "b")
	informer.expect("DELETED a")
	h.deleteSet("a")
	h.set("a", nil)
	h.deleteSet("b")
	informer.expect("DELETED b")

	// A user who has lost a right cannot read the history either.
	if w, err := ann.tryWatch(t.Context(), version(got.Version)); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the loss: %v, %v, want 410", w, err)
	}
}

// TestSets_LateStartShowsNothingRevoked: the sets are followed from the first request on, with a list that is later than those of the
// members.
func TestSets_LateStartShowsNothingRevoked(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a", "b")
	members, sets, _ := h.wholeReplica()
	h.client(members, someone("ann")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	h.front.allow("ann", "b")
	h.client(members, someone("ann")).awaitNames("c1.b", "c4.b")
	expectNames(t, h.client(sets, someone("ann")).names(), "b")
	// And the members continue.
	expectNames(t, h.client(members, someone("ann")).names(), "c1.b", "c4.b")
}

func TestSets_NotServedAfterShutdown(t *testing.T) {
	h := twoSets(t)
	_, sets, stop := h.wholeReplica()
	stop()
	if _, err := sets.List(as(context.Background(), admin), nil); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("list: %v, want a 503", err)
	}
}

func TestSets_TableMatchesStoredSets(t *testing.T) {
	h := twoSets(t)
	_, sets, _ := h.wholeReplica()
	list, err := sets.List(as(t.Context(), admin), nil)
	must(t, err)
	table, err := sets.ConvertToTable(t.Context(), list, nil)
	must(t, err)
	var names []string
	for _, row := range table.Rows {
		names = append(names, row.Cells[0].(string))
	}
	slices.Sort(names)
	expectNames(t, names, "a", "b")
}
