// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// TestFilter_AbandonedWatchEndsWithContext: a handler may abandon a watch without stopping it, and without having read anything: only its context
// ends.
func TestFilter_AbandonedWatchEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFake()
		f := &filter{reader: &Reader{Resource: position.Resource{Split: position.SplitName}}, source: source, who: someone("ann"), visible: visibleObjects{Names: rbac.Names{All: true}}, result: make(chan watch.Event), stop: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go f.run(ctx)
		source.Add(&view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: "c1.a"}}) // returns when run has received it
		synctest.Wait()
		if source.IsStopped() {
			t.Fatal("the watch of the cache was stopped before the end")
		}
		cancel()
		synctest.Wait()
		if !source.IsStopped() {
			t.Error("the watch of the cache goes on")
		}
	})
}

// TestFilter_BookmarkInsideChangeIsDelayed: after a bookmark in the middle of a change, a client could resume with half of it. The following
// events complete the change.
func TestFilter_BookmarkInsideChangeIsDelayed(t *testing.T) {
	resource := position.Resource{ByName: true, New: func() generic.Object { return &cluster.ManagedCluster{} }}
	row := func(name, set, version string) *cluster.ManagedCluster {
		c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		if set != "" {
			position.SetRow(c, set, []string{set})
		}
		return c
	}
	bookmark := func(version string) watch.Event {
		return watch.Event{Type: watch.Bookmark, Object: row("", "", version)}
	}
	f := &filter{reader: &Reader{Resource: resource}, visible: visibleObjects{Names: rbac.NamesOf("a")}, source: watch.NewFake(),
		result: make(chan watch.Event, 10), stop: make(chan struct{})}
	for _, event := range []watch.Event{
		bookmark("1"),
		{Type: watch.Added, Object: row("c", "a", "2")}, bookmark("2"), {Type: watch.Added, Object: row("c", "", "3")}, bookmark("3"),
		{Type: watch.Deleted, Object: row("d", "a", "4")}, bookmark("4"), {Type: watch.Modified, Object: row("d", "b", "5")},
		{Type: watch.Modified, Object: resource.NewEnd()}, bookmark("6"),
	} {
		if !f.show(t.Context(), event) {
			t.Fatal("the watch has ended")
		}
	}
	close(f.result)
	var got []string
	for event := range f.result {
		object := event.Object.(generic.Object)
		got = append(got, string(event.Type)+" "+object.GetName()+" "+object.GetResourceVersion())
	}
	want := []string{"BOOKMARK  1", "ADDED c 3", "DELETED d 5", "BOOKMARK  6"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
