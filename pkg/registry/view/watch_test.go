// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

func TestWatch_ResumesFromListVersion(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("all", "*")
	h.client(r, someone("all")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	for _, who := range []client{h.client(r, admin), h.client(r, someone("all"))} {
		w := who.watch(version(who.list().ResourceVersion))
		h.relabel("c3", labelled("region=apac"))
		w.expect("ADDED c3.a")
		h.relabel("c3", labelled("region=apac", "unrelated=x"))
		w.expect("MODIFIED c3.a")
		h.relabel("c3", labelled("stage=prod"))
		w.expect("DELETED c3.a", "ADDED c3.b")
		h.changeCluster("c3", func(c *cluster.ManagedCluster) { c.Spec.HubAcceptsClient = !c.Spec.HubAcceptsClient })
		w.expect("MODIFIED c3.b")
		h.changeSet("b", labelled("stage=dev"))
		w.expect("DELETED c1.b", "ADDED c2.b", "DELETED c3.b", "DELETED c4.b")
		h.deleteSet("a")
		w.expect("DELETED c1.a", "DELETED c2.a")
		h.set("a", labelled("region=apac"))
		w.expect("ADDED c1.a", "ADDED c2.a")
		h.changeSet("b", labelled("stage=prod"))
		w.expect("ADDED c1.b", "DELETED c2.b", "ADDED c3.b", "ADDED c4.b")
		h.deleteCluster("c1")
		w.expect("DELETED c1.a", "DELETED c1.b")
		h.cluster("c1", labelled("region=apac", "stage=prod"))
		w.expect("ADDED c1.a", "ADDED c1.b")
		h.relabel("c3", nil)
		w.expect("DELETED c3.b")
	}
}

// TestWatch_InvisibleChangesCauseNoEvents: changes that are not visible in a member cause no event.
func TestWatch_InvisibleChangesCauseNoEvents(t *testing.T) {
	h := twoSets(t)
	c := h.client(h.replica(), admin)
	w := c.watch(version(c.list().ResourceVersion))
	h.changeCluster("c1", func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = 5 })
	h.changeCluster("c1", func(c *cluster.ManagedCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue}}
	})
	h.cluster("c9", labelled("region=mars"))
	h.changeSet("a", labelled("region=apac"))
	h.cluster("c5", labelled("region=apac"))
	w.expect("ADDED c5.a")
}

// TestWatch_ResumesInsideBatch: one change of a set moves many members at one etcd revision. A client that got any part of it gets exactly the rest,
// from any replica.
func TestWatch_ResumesInsideBatch(t *testing.T) {
	h := newHub(t)
	replicas := []*clustersetmember.REST{h.replica(), h.replica()}
	for i := range 8 {
		h.cluster(fmt.Sprintf("c%d", i), labelled("half="+strconv.Itoa(i%2)))
	}
	h.set("s", labelled("half=0"))
	h.front.allow("ann", "s")
	root := h.client(replicas[0], admin)
	h.client(replicas[0], someone("ann")).awaitNames(root.names()...)
	h.client(replicas[1], someone("ann")).awaitNames(root.names()...)
	before := root.list().ResourceVersion
	full := []string{"DELETED c0.s", "ADDED c1.s", "DELETED c2.s", "ADDED c3.s", "DELETED c4.s", "ADDED c5.s",
		"DELETED c6.s", "ADDED c7.s"}
	end := []string{"MODIFIED c7.s"}

	live := root.watch(version(before))
	changed := h.changeSet("s", labelled("half=1"))
	h.changeCluster("c7", func(c *cluster.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	batch := live.expect(full...)
	for i, event := range batch {
		if want := strconv.FormatUint(position.Version(number(t, changed.ResourceVersion), i), 10); event.Version != want {
			t.Errorf("event %d, %v, has the version %s, want %s", i, event, event.Version, want)
		}
	}
	for i, r := range replicas {
		for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
			who.watch(version(before)).expect(append(slices.Clone(full), end...)...)
			for seen, event := range batch {
				t.Run(fmt.Sprintf("replica %d, %s, after event %d", i, who.who.GetName(), seen), func(t *testing.T) {
					who.t = t
					who.watch(version(event.Version)).expect(append(slices.Clone(full[seen+1:]), end...)...)
				})
			}
		}
	}
}

// TestWatch_ResumesFromListInsideBatch: a list in the middle of a batch must be followed by the rest of it, or have all of it.
func TestWatch_ResumesFromListInsideBatch(t *testing.T) {
	h := newHub(t)
	r := h.replica()
	root := h.client(r, admin)
	for i := range 4 {
		h.cluster(fmt.Sprintf("c%d", i), nil)
	}
	h.set("s", nil)
	live := root.watch(version(root.list().ResourceVersion))
	h.changeSet("s", map[string]string{})
	batch := live.expect("ADDED c0.s", "ADDED c1.s", "ADDED c2.s", "ADDED c3.s")
	for i, event := range batch {
		list := root.list(exactly(event.Version))
		if len(list.Items) != i+1 || list.ResourceVersion != event.Version {
			t.Errorf("after event %d there are %d members at %s", i, len(list.Items), list.ResourceVersion)
		}
	}
}

func TestWatch_EventVersionsAreEqualOnAllReplicas(t *testing.T) {
	h := twoSets(t)
	first, second := h.replica(), h.replica()
	from := h.client(first, admin).list().ResourceVersion
	one, two := h.client(first, admin).watch(version(from)), h.client(second, admin).watch(version(from))
	h.changeSet("a", map[string]string{})
	h.cluster("c5", labelled("stage=prod"))
	h.deleteSet("b")
	h.deleteCluster("c1")
	const events = 4 + 2 + 3 + 1
	last := number(t, from)
	for range events {
		a, b := one.nextChange(), two.nextChange()
		if a.String() != b.String() || a.Version != b.Version {
			t.Errorf("one replica says %v at %s, another %v at %s", a, a.Version, b, b.Version)
		}
		if n := number(t, a.Version); n <= last {
			t.Errorf("%v has the version %d, after %d", a, n, last)
		} else {
			last = n
		}
	}
}

// TestWatch_LateReplicaContinuesVersions: a replica that starts later assigns to existing objects versions that are not lower than
// on replicas that observed the changes, and the same versions to later changes.
func TestWatch_LateReplicaContinuesVersions(t *testing.T) {
	h := twoSets(t)
	first := h.replica()
	h.changeSet("a", map[string]string{})
	second := h.replica()
	one, two := h.client(first, admin).list(), h.client(second, admin).list()
	expectNames(t, namesOf(two), namesOf(one)...)
	for i := range one.Items {
		if was, is := number(t, one.Items[i].ResourceVersion), number(t, two.Items[i].ResourceVersion); is < was || position.RevisionOf(is) != position.RevisionOf(was) {
			t.Errorf("%s: version %d there, %d here", one.Items[i].Name, was, is)
		}
		if one.Items[i].UID != two.Items[i].UID {
			t.Errorf("%s: UID %s there, %s here", one.Items[i].Name, one.Items[i].UID, two.Items[i].UID)
		}
	}
	a, b := h.client(first, admin).watch(version(one.ResourceVersion)), h.client(second,
		admin).watch(version(two.ResourceVersion))
	h.changeSet("a", labelled("region=apac"))
	for range 4 {
		if x, y := a.nextChange(), b.nextChange(); x.String() != y.String() || x.Version != y.Version {
			t.Errorf("%v at %s there, %v at %s here", x, x.Version, y, y.Version)
		}
	}
}

func TestWatch_SelectorsAddAndDelete(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a", "b")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
		t.Run(who.who.GetName(), func(t *testing.T) {
			who.t = t
			from := version(who.list().ResourceVersion)
			prod, ofA := who.watch(from, byLabels("stage=prod")), who.watch(from, byFields("spec.clusterSet=a"))
			c2, c2a := who.watch(from, byFields("spec.cluster=c2")), who.watch(from, byFields("metadata.name=c2.a"))
			h.relabel("c2", labelled("region=apac", "stage=prod"))
			prod.expect("ADDED c2.a", "ADDED c2.b")
			ofA.expect("MODIFIED c2.a")
			c2.expect("MODIFIED c2.a", "ADDED c2.b")
			c2a.expect("MODIFIED c2.a")
			h.relabel("c2", labelled("region=apac", "stage=dev"))
			prod.expect("DELETED c2.a", "DELETED c2.b")
			ofA.expect("MODIFIED c2.a")
			c2.expect("MODIFIED c2.a", "DELETED c2.b")
			c2a.expect("MODIFIED c2.a")
			h.relabel("c1", nil)
			h.relabel("c2", nil)
			prod.expect("DELETED c1.a", "DELETED c1.b")
			ofA.expect("DELETED c1.a", "DELETED c2.a")
			c2.expect("DELETED c2.a")
			c2a.expect("DELETED c2.a")
			h.relabel("c1", labelled("region=apac", "stage=prod"))
			h.relabel("c2", labelled("region=apac", "stage=dev"))
		})
	}
}

// TestWatch_BookmarkBeforeTimeout: a bookmark is sent before the watch times out, and its version is beyond what the client received.
func TestWatch_BookmarkBeforeTimeout(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
		from := who.list().ResourceVersion
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		w, err := who.tryWatch(ctx, version(from), bookmarks)
		must(t, err)
		// A change that the user does not see advances the bookmark nevertheless.
		written := h.cluster("c9-"+who.who.GetName(), labelled("region=mars"))
		for {
			c, ok := w.next()
			if !ok {
				t.Fatal("the watch ended without a bookmark")
			}
			if c.Type != watch.Bookmark {
				t.Fatalf("unexpected %v", c)
			}
			if number(t, c.Version) >= position.Version(number(t, written.ResourceVersion), position.End) {
				break
			}
		}
		cancel()
	}
}

func TestWatch_BookmarksOnlyOnRequest(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	w := h.client(r, someone("ann")).watch(version(h.client(r, admin).list().ResourceVersion))
	h.front.allow("ann", "a", "b")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	h.relabel("c1", nil)
	for _, want := range []string{"ADDED c1.b", "ADDED c4.b", "DELETED c1.a", "DELETED c1.b"} {
		if c, _ := w.next(); c.String() != want {
			t.Fatalf("got %v, want %s", c, want)
		}
	}
}

// TestWatch_OldVersionIsExpired: a version without history on this replica results in a 410, as an event or at once.
func TestWatch_OldVersionIsExpired(t *testing.T) {
	h := twoSets(t)
	first := h.replica()
	h.front.allow("ann", "a")
	h.client(first, someone("ann")).awaitNames("c1.a", "c2.a")
	past := h.client(first, admin).list().ResourceVersion
	h.cluster("c5", nil)
	second := h.replica()
	h.awaitVisibility(second)
	for _, who := range []client{h.client(second, admin), h.client(second, someone("ann"))} {
		w, err := who.tryWatch(t.Context(), version(past))
		if apierrors.IsResourceExpired(err) {
			continue
		}
		must(t, err)
		c, _ := w.next()
		if status, ok := c.Object.(*metav1.Status); !ok || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("%s: got %v, want 410 Expired", who.who.GetName(), c)
		}
		if c, open := w.next(); open {
			t.Errorf("%s: %v after the error", who.who.GetName(), c)
		}
	}
}

func TestWatch_EndsWithContext(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.awaitVisibility(r)
	for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := who.tryWatch(ctx, version(h.client(r, admin).list().ResourceVersion))
		must(t, err)
		cancel()
		if c, open := w.next(); open {
			t.Errorf("got %v, want the end", c)
		}
	}
}

func TestWatch_ClockIsHidden(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	from := h.client(r, admin).list().ResourceVersion
	root := h.client(r, admin).watch(version(from))
	h.front.allow("all", "*")
	h.client(r, someone("all")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	h.relabel("c1", nil)
	root.expect("DELETED c1.a", "DELETED c1.b")
	for _, who := range []client{h.client(r, admin), h.client(r, someone("all"))} {
		for _, m := range who.list(version("0")).Items {
			if strings.Contains(m.Name, position.ClockName) || m.Spec.Cluster == "" {
				t.Errorf("%s sees %q", who.who.GetName(), m.Name)
			}
		}
	}
}
