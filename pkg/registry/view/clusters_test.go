// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// The tests of members also apply to clusters, which use the same code: churn_test.go has both. Here are the tests that only clusters need: they are
// visible by name or by any of their sets, and appear once, in however many ways they are visible.

func TestClusters_ByNameAndBySet(t *testing.T) {
	h := twoSets(t)
	h.set("a-b", labelled("stage=dev"))
	h.front.allowClusters("ann", nil, []string{"a"})
	h.front.allowClusters("bob", []string{"c3", "c1", "c9", "..", "a/b"}, []string{"b", "gone", "..", ""})
	h.front.allowClusters("cid", nil, []string{"b", "a", "a-b"})
	h.front.allowClusters("eve", nil, []string{"*"})
	h.front.allowClusters("fay", []string{"*"}, nil)
	h.front.allow("members-only", "*")
	h.front.allowClusters("group:team", []string{"c4"}, nil)
	r := h.clusterReplica()
	for who, want := range map[string][]string{
		"ann": {"c1", "c2"}, "bob": {"c1", "c3", "c4"}, "cid": {"c2", "c1", "c4"}, "eve": {"c2", "c1", "c4"}, "fay": {"c1", "c2", "c3", "c4"},
		"members-only": nil, "stranger": nil,
	} {
		user := h.client(r, someone(who))
		user.awaitNames(want...)
		// In pages of one object each.
		var got []string
		list := user.list(limit(1))
		for at := list.ResourceVersion; ; list = user.list(limit(1), continued(list.Continue)) {
			if len(list.Items) > 1 || list.ResourceVersion != at {
				t.Fatalf("%s: a page at %s has %v, the first was at %s", who, list.ResourceVersion, namesOf(list), at)
			}
			got = append(got, namesOf(list)...)
			if list.Continue == "" {
				break
			}
		}
		expectNames(t, got, want...)
		// And by name.
		for _, name := range []string{"c1", "c2", "c3", "c4", "c9"} {
			var one []string
			if slices.Contains(want, name) {
				one = []string{name}
			}
			expectNames(t, user.names(byFields("metadata.name="+name)), one...)
			expectNames(t, user.names(byFields("metadata.name="+name), version("0")), one...)
			got, err := r.Get(as(t.Context(), user.who), name, &metav1.GetOptions{})
			switch {
			case len(one) > 0:
				must(t, err)
				expectPlain(t, got.(metav1.Object))
			case who == "fay" && name == "c9" || who == "bob" && name == "c9":
				if !apierrors.IsNotFound(err) {
					t.Errorf("%s gets %s: %v, want 404", who, name, err)
				}
			case !apierrors.IsForbidden(err):
				t.Errorf("%s gets %s: %v, want 403 whether or not it exists", who, name, err)
			}
		}
	}
	h.client(r, someone("ann", "team")).awaitNames("c4", "c1", "c2")
	for _, name := range []string{"", "..", "a/b", "\x00visibility", "\x00end"} {
		if _, err := r.Get(as(t.Context(), admin), name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of %q: %v, want 404", name, err)
		}
	}
	expectNames(t, h.client(r, admin).names(), "c1", "c2", "c3", "c4")
	expectNames(t, h.client(r, someone("cid")).names(byLabels("stage=prod")), "c1", "c4")
	h.changeCluster("c4", func(c *cluster.ManagedCluster) { c.Spec.HubAcceptsClient = true })
	expectNames(t, h.client(r, someone("cid")).names(byFields("spec.hubAcceptsClient=true")), "c4")
}

// TestClusters_StartWithFirstReader: clusters are computed from the first request on, of any user and any kind.
func TestClusters_StartWithFirstReader(t *testing.T) {
	h := twoSets(t)
	h.front.allowClusters("ann", nil, []string{"a"})
	expectNames(t, h.client(h.freshClusters(), someone("ann")).names(), "c1", "c2")
	h.client(h.freshClusters(), someone("ann")).watch(initialEvents).expectInitial("c1", "c2")
	_, err := h.freshClusters().Get(as(t.Context(), someone("ann")), "c1", &metav1.GetOptions{})
	must(t, err)
}

// TestClusters_MoveBetweenVisibleSets: a cluster that is visible in two ways has one event per change, and is deleted for the user when
// the last of them ends.
func TestClusters_MoveBetweenVisibleSets(t *testing.T) {
	h := newHub(t)
	h.set("a", labelled("a=x"))
	h.set("b", labelled("b=x"))
	h.set("hidden", labelled("h=x"))
	h.cluster("c1", nil)
	h.cluster("c2", labelled("a=x"))
	h.front.allowClusters("both", nil, []string{"a", "b"})
	h.front.allowClusters("onlya", nil, []string{"a"})
	h.front.allowClusters("named", []string{"c1"}, []string{"a"})
	r := h.clusterReplica()
	h.client(r, someone("named")).awaitNames("c1", "c2")
	h.client(r, someone("both")).awaitNames("c2")
	watches := map[string][]*stream{}
	for _, who := range []string{"both", "onlya", "named"} {
		c := h.client(r, someone(who))
		from := version(c.list().ResourceVersion)
		// With several watches the cacher shares its objects among them.
		watches[who] = []*stream{c.watch(from), c.watch(from, bookmarks)}
	}
	last := ""
	step := func(do func(), both, onlya, named string) {
		t.Helper()
		do()
		for who, want := range map[string]string{"both": both, "onlya": onlya, "named": named} {
			for _, w := range watches[who] {
				if want == "" {
					continue
				}
				got := w.expect(want)
				last = got[0].Version
				if labels := got[0].Object.(metav1.Object).GetLabels(); who != "named" && labels["secret"] != "" {
					t.Errorf("%s sees %v of a cluster that has left", who, labels)
				}
			}
		}
	}
	step(func() { h.relabel("c1", labelled("a=x")) }, "ADDED c1", "ADDED c1", "MODIFIED c1")
	step(func() { h.relabel("c1", labelled("a=x", "b=x")) }, "MODIFIED c1", "MODIFIED c1", "MODIFIED c1")
	step(func() { h.relabel("c1", labelled("b=x")) }, "MODIFIED c1", "DELETED c1", "MODIFIED c1")
	// Changes of a cluster that left a set are not sent to users of that set.
	step(func() { h.relabel("c1", labelled("h=x", "secret=yes")) }, "DELETED c1", "", "MODIFIED c1")
	// One set starts to select it, then another one, and neither: the cluster itself does not change.
	h.relabel("c1", labelled("h=x"))
	for _, w := range watches["named"] {
		w.expect("MODIFIED c1")
	}
	step(func() { h.changeSet("b", labelled("h=x")) }, "ADDED c1", "", "")
	step(func() { h.changeSet("a", labelled("h=x")) }, "DELETED c2", "", "DELETED c2")
	for _, w := range watches["onlya"] {
		w.expectUnordered("ADDED c1", "DELETED c2")
	}
	step(func() { h.deleteSet("b") }, "", "", "")
	step(func() { h.deleteSet("a") }, "DELETED c1", "DELETED c1", "")
	h.set("a", labelled("h=x"))
	step(func() {}, "ADDED c1", "ADDED c1", "")
	step(func() { h.deleteCluster("c1") }, "DELETED c1", "DELETED c1", "DELETED c1")
	// A client that continues from the last version gets no event again.
	h.cluster("c1", labelled("h=x"))
	h.client(r, someone("both")).watch(version(last)).expect("ADDED c1")
}

func TestClusters_GrantsAndRevocationsReachOpenWatches(t *testing.T) {
	h := twoSets(t)
	h.front.allowClusters("ann", []string{"c1"}, nil)
	replicas := []registry{h.clusterReplica(), h.clusterReplica()}
	var watches []*stream
	for _, r := range replicas {
		ann := h.client(r, someone("ann"))
		ann.awaitNames("c1")
		watches = append(watches, ann.watch(version(ann.list().ResourceVersion), bookmarks), ann.watch(initialEvents))
		watches[len(watches)-1].expectInitial("c1")
	}
	for _, step := range []struct {
		names, sets []string
		want        []string
	}{
		{[]string{"c1"}, []string{"a"}, []string{"ADDED c2"}},                           // c1 is visible in two ways now
		{nil, []string{"a", "b"}, []string{"ADDED c4"}},                                 // and in other ways
		{nil, []string{"b"}, []string{"DELETED c2"}},                                    // c1 is in both sets
		{[]string{"*"}, nil, []string{"ADDED c2", "ADDED c3"}},                          // all
		{nil, []string{"*"}, []string{"DELETED c3"}},                                    // all that are in a set
		{[]string{"c3"}, []string{"a"}, []string{"ADDED c3", "DELETED c4"}},             //
		{nil, nil, []string{"DELETED c1", "DELETED c2", "DELETED c3"}},                  // nothing
		{[]string{"c1", "c2"}, []string{"a", "gone"}, []string{"ADDED c1", "ADDED c2"}}, // something again
		{[]string{"c9"}, []string{"gone"}, []string{"DELETED c1", "DELETED c2"}},        //
		{[]string{"c1"}, []string{"b"}, []string{"ADDED c1", "ADDED c4"}},               //
		{[]string{"c1", "c4"}, []string{"gone", "a"}, []string{"ADDED c2"}},             //
	} {
		h.front.allowClusters("ann", step.names, step.sets)
		for _, w := range watches {
			w.expectUnordered(slices.Clone(step.want)...)
		}
	}
}

// TestClusters_RevokedRightCannotReadHistory: a revoked right neither opens a watch from an earlier version, nor lists one.
func TestClusters_RevokedRightCannotReadHistory(t *testing.T) {
	h := twoSets(t)
	h.front.allowClusters("ann", []string{"c3"}, []string{"a", "b"})
	r := h.clusterReplica()
	ann := h.client(r, someone("ann"))
	ann.awaitNames("c3", "c1", "c2", "c4")
	before := ann.list(limit(1))
	for _, rights := range []struct{ names, sets, want []string }{
		{nil, []string{"a", "b"}, []string{"c1", "c2", "c4"}}, {[]string{"c3"}, []string{"a"}, []string{"c3", "c1", "c2"}},
	} {
		h.front.allowClusters("ann", rights.names, rights.sets)
		ann.awaitNames(rights.want...)
		if w, err := ann.tryWatch(t.Context(), version(before.ResourceVersion)); !apierrors.IsResourceExpired(err) {
			t.Errorf("a watch from before opens: %v, %v", w, err)
		}
		if _, err := ann.tryList(exactly(before.ResourceVersion)); !apierrors.IsResourceExpired(err) {
			t.Errorf("a list of before: %v", err)
		}
		if _, err := ann.tryList(limit(1), continued(before.Continue)); !apierrors.IsResourceExpired(err) {
			t.Errorf("a page of before: %v", err)
		}
	}
}

// TestClusters_WatchResumesInsideMove: a watch that is cut off among the events of one change of a set continues with the rest.
func TestClusters_WatchResumesInsideMove(t *testing.T) {
	h := newHub(t)
	h.set("a", labelled("a=x"))
	h.set("also", labelled("k=y"))
	for i := range 5 {
		h.cluster(fmt.Sprintf("c%d", i), labelled("k=x", "also=y"))
	}
	h.front.allowClusters("ann", nil, []string{"a", "also"})
	replicas := []registry{h.clusterReplica(), h.clusterReplica()}
	ann := h.client(replicas[0], someone("ann"))
	ann.awaitNames()
	w := ann.watch(version(ann.list().ResourceVersion))
	h.changeSet("a", labelled("k=x"))
	want := []string{"ADDED c0", "ADDED c1", "ADDED c2", "ADDED c3", "ADDED c4"}
	events := w.expect(want...)
	for _, r := range replicas {
		h.client(r, someone("ann")).awaitNames("c0", "c1", "c2", "c3", "c4")
		for i, event := range events {
			rest := h.client(r, someone("ann")).watch(version(event.Version))
			rest.expect(want[i+1:]...)
		}
	}
}

// TestClusters_AgentRolesAreIrrelevant: agents may have a role of their own each: these neither change what users see, nor make clusters visible
// here.
func TestClusters_AgentRolesAreIrrelevant(t *testing.T) {
	h := twoSets(t)
	h.front.allowClusters("ann", []string{"c1"}, nil)
	h.front.allowClusters("group:"+agentPrefix+"c2", []string{"c2"}, []string{"a"})
	r := h.clusterReplica()
	h.client(r, someone("ann")).awaitNames("c1")
	expectNames(t, h.client(r, someone(agentPrefix+"c2:agent", agentPrefix+"c2")).names())
	digest := func() string { return h.stored().ClustersDigest }
	before := digest()
	h.front.grant("group:"+agentPrefix+"c3", getting("managedclusters", "c3"), getting("managedclustersets", "a"))
	h.front.allow("bob", "b") // replicas observe it after the change
	h.eventually("the rules of sets are written", func() (bool, string) {
		return len(h.client(r, someone("ann")).names()) == 1 && h.stored().ClusterRoles == uint64(h.front.version.Load()-1), fmt.Sprint(h.stored())
	})
	if after := digest(); after != before {
		t.Errorf("the digest was %s and is %s", before, after)
	}
}

// TestClusters_MissingDigestIsRestored: a replica of a version without clusters writes no digest for them. Until the digest exists again
// nothing is shown that is uncertain, and then all users see their clusters.
func TestClusters_MissingDigestIsRestored(t *testing.T) {
	h := twoSets(t)
	h.front.allowClusters("ann", nil, []string{"a"})
	r := h.clusterReplica()
	ann := h.client(r, someone("ann"))
	ann.awaitNames("c1", "c2")
	w := ann.watch(version(ann.list().ResourceVersion), bookmarks)
	holds := h.stored()
	h.changeStored(func(revision *storedRevision) { revision.ClustersDigest = "" })
	h.eventually("it is written again", func() (bool, string) {
		now := h.stored()
		return now.ClustersDigest == holds.ClustersDigest, fmt.Sprint(now)
	})
	ann.awaitNames("c1", "c2")
	h.deleteCluster("c1")
	for {
		event, open := w.next()
		if !open || event.Type == watch.Error || event.String() == "DELETED c1" {
			break // The watch continues, or the client must list again.
		}
		if event.Type != watch.Bookmark {
			t.Fatalf("got %s", event)
		}
	}
	ann.awaitNames("c2")
}

// TestClusters_OnlyGetGrants: rights with another meaning show no clusters.
func TestClusters_OnlyGetGrants(t *testing.T) {
	h := twoSets(t)
	rule := func(verb, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{cluster.GroupName}, Resources: []string{resource}}
	}
	h.front.grant("ann", rule("list", "managedclusters"), rule("watch", "managedclustersets/clusters"), rule("update", "managedclustersets/clusters"),
		rule("get", "managedclusters/status"), rule("get", "managedclustersets"), rule("get", "managedclustersets/join"), rule("get", "*/status"))
	h.front.grant("bob", rule("get", "*/clusters"))
	h.front.grant("cid", rule("*", "*"))
	r := h.clusterReplica()
	h.client(r, someone("bob")).awaitNames("c1", "c2", "c4")
	h.client(r, someone("cid")).awaitNames("c1", "c2", "c3", "c4")
	expectNames(t, h.client(r, someone("ann")).names())
}
