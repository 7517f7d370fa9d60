// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
)

func TestVisibility_ListShowsSetsOfUser(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	h.front.allow("group:ops", "b")
	h.front.allow("all", "*")
	r := h.replica()
	for _, tc := range []struct {
		name   string
		groups []string
		want   []string
	}{
		{"ann", nil, []string{"c1.a", "c2.a"}},
		{"ann", []string{"ops"}, []string{"c1.a", "c2.a", "c1.b", "c4.b"}},
		{"bob", []string{"ops"}, []string{"c1.b", "c4.b"}},
		{"all", nil, []string{"c1.a", "c2.a", "c1.b", "c4.b"}},
		{"bob", nil, nil},
	} {
		expectNames(t, h.client(r, someone(tc.name, tc.groups...)).names(), tc.want...)
	}
	// A user who sees nothing also gets a version to watch from.
	if v := h.client(r, someone("bob")).list().ResourceVersion; v == "" || v == "0" {
		t.Errorf("the list of a user who sees nothing has the version %q", v)
	}
}

func TestVisibility_WatchShowsOnlySetsOfUser(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	ann := h.client(r, someone("ann"))
	from := version(ann.list().ResourceVersion)
	// With several watches the cacher shares its objects among them.
	watches := []*stream{ann.watch(from), ann.watch(from), ann.watch(from, byLabels("region")), ann.watch(from,
		byFields("spec.cluster!=x"))}
	h.client(r, admin).watch(from)
	h.cluster("c5", labelled("stage=prod"))
	h.relabel("c4", labelled("stage=prod", "more=x"))
	h.deleteCluster("c5")
	h.changeSet("b", map[string]string{})
	h.deleteSet("b")
	h.set("b", labelled("stage=prod"))
	h.cluster("c6", labelled("region=apac", "stage=prod"))
	for _, w := range append(watches, ann.watch(from)) {
		w.expect("ADDED c6.a")
	}
}

func TestVisibility_GrantsAndRevocationsReachOpenWatches(t *testing.T) {
	h := twoSets(t)
	h.set("d", labelled("stage=dev"))
	h.front.allow("ann", "a")
	replicas := []*clustersetmember.REST{h.replica(), h.replica()}
	h.awaitVisibility(replicas...)
	var all, prod, ofB []*stream
	for _, r := range replicas {
		ann := h.client(r, someone("ann"))
		from := version(ann.list().ResourceVersion)
		all = append(all, ann.watch(from), ann.watch(from, bookmarks))
		prod = append(prod, ann.watch(from, byLabels("stage=prod")))
		ofB = append(ofB, ann.watch(from, byFields("spec.clusterSet=b")))
	}
	each := func(watches []*stream, want ...string) {
		t.Helper()
		for _, w := range watches {
			w.expect(want...)
		}
	}
	step := func(what string, f func()) {
		t.Helper()
		t.Log(what)
		f()
	}

	step("a grant adds the members of the set", func() { h.front.allow("ann", "a", "b") })
	each(all, "ADDED c1.b", "ADDED c4.b")
	each(prod, "ADDED c1.b", "ADDED c4.b")
	each(ofB, "ADDED c1.b", "ADDED c4.b")

	step("whose changes are shown from then on", func() { h.relabel("c4", labelled("stage=prod", "x=y")) })
	each(all, "MODIFIED c4.b")
	each(prod, "MODIFIED c4.b")
	each(ofB, "MODIFIED c4.b")

	step("a grant and a revocation at once", func() { h.front.allow("ann", "b", "d") })
	for _, w := range all {
		w.expectUnordered("DELETED c1.a", "DELETED c2.a", "ADDED c2.d")
	}
	each(prod, "DELETED c1.a")

	step("all sets", func() { h.front.allow("ann", "*") })
	each(all, "ADDED c1.a", "ADDED c2.a")
	each(prod, "ADDED c1.a")

	step("also those to come", func() { h.set("e", labelled("region=emea")) })
	each(all, "ADDED c3.e")

	step("and back to one", func() { h.front.allow("ann", "a") })
	for _, w := range all {
		w.expectUnordered("DELETED c1.b", "DELETED c4.b", "DELETED c2.d", "DELETED c3.e")
	}
	each(prod, "DELETED c1.b", "DELETED c4.b")
	each(ofB, "DELETED c1.b", "DELETED c4.b")

	step("nothing", func() { h.front.revoke("ann") })
	each(all, "DELETED c1.a", "DELETED c2.a")
	each(prod, "DELETED c1.a")

	h.cluster("c7", labelled("region=apac", "stage=prod"))
	step("something again", func() { h.front.allow("ann", "a") })
	each(all, "ADDED c1.a", "ADDED c2.a", "ADDED c7.a")
	each(prod, "ADDED c1.a", "ADDED c7.a")
}

func TestVisibility_GrantToGroupReachesMembers(t *testing.T) {
	h := twoSets(t)
	h.front.allow("group:ops", "a")
	r := h.replica()
	bob, other := h.client(r, someone("bob", "ops")), h.client(r, someone("bob"))
	from := version(bob.list().ResourceVersion)
	w, none := bob.watch(from), other.watch(from)
	h.front.allow("group:ops", "b")
	w.expectUnordered("DELETED c1.a", "DELETED c2.a", "ADDED c1.b", "ADDED c4.b")
	h.front.allow("bob", "a")
	w.expect("ADDED c1.a", "ADDED c2.a")
	none.expect("ADDED c1.a", "ADDED c2.a")
}

// TestVisibility_WatchResumesInsideGrant: a client that is disconnected in the middle of the events of a grant gets all of them again; one that got
// the bookmark after them does not get them twice.
func TestVisibility_WatchResumesInsideGrant(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	replicas := []*clustersetmember.REST{h.replica(), h.replica()}
	h.awaitVisibility(replicas...)
	ann := h.client(replicas[0], someone("ann"))
	w := ann.watch(version(ann.list().ResourceVersion), bookmarks)
	h.front.allow("ann", "a", "b")
	gained := []string{"ADDED c1.b", "ADDED c4.b"}
	events := w.expectUnordered(slices.Clone(gained)...)
	end, ok := w.next()
	if !ok || end.Type != watch.Bookmark {
		t.Fatalf("got %v after the grant, want a bookmark", end)
	}
	h.deleteCluster("c4")
	h.client(replicas[0], admin).watch(version(end.Version)).expect("DELETED c4.b")
	for i, r := range replicas {
		for seen, event := range events {
			t.Run(fmt.Sprintf("replica %d, after %d events", i, seen+1), func(t *testing.T) {
				w := client{t, r, someone("ann")}.watch(version(event.Version))
				w.expectUnordered(slices.Clone(gained)...)
				w.expect("DELETED c4.b")
			})
		}
		t.Run(fmt.Sprintf("replica %d, after the bookmark", i), func(t *testing.T) {
			client{t, r, someone("ann")}.watch(version(end.Version)).expect("DELETED c4.b")
		})
	}
}

// TestVisibility_RevokedRightCannotReadHistory: a revoked right opens no watch at an earlier version, whatever was granted in between: it would show
// events of the set by the rules of that time.
func TestVisibility_RevokedRightCannotReadHistory(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	replicas := []*clustersetmember.REST{h.replica(), h.replica()}
	h.awaitVisibility(replicas...)
	ann := h.client(replicas[0], someone("ann"))
	before := ann.list().ResourceVersion
	w := ann.watch(version(before), bookmarks)
	h.front.allow("ann", "a", "b")
	events := w.expectUnordered("ADDED c1.b", "ADDED c4.b")
	granted, _ := w.next() // the bookmark
	h.relabel("c4", labelled("stage=prod", "secret=yes"))
	w.expect("MODIFIED c4.b")
	h.front.allow("ann", "a")
	w.expectUnordered("DELETED c1.b", "DELETED c4.b")
	revoked, _ := w.next()
	for i, r := range replicas {
		ann := client{t, r, someone("ann")}
		ann.awaitNames("c1.a", "c2.a")
		for _, past := range []string{before, events[0].Version, granted.Version} {
			if w, err := ann.tryWatch(t.Context(), version(past)); !apierrors.IsResourceExpired(err) {
				t.Errorf("replica %d: a watch from %s opens (%v, %v), want 410", i, past, w, err)
			}
			if list, err := ann.tryList(exactly(past)); err == nil {
				for _, name := range namesOf(list) {
					if strings.HasSuffix(name, ".b") {
						t.Errorf("replica %d: a list at %s shows %s", i, past, name)
					}
				}
			}
		}
		ann.watch(version(revoked.Version))
	}
}

// TestVisibility_PageAfterGrantIsRejected: pages of one list are filtered by the same rules, those of its version: otherwise a watch from
// there would never correct what a later page had too much.
func TestVisibility_PageAfterGrantIsRejected(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	ann := h.client(r, someone("ann"))
	ann.awaitNames("c1.a", "c2.a")
	for _, change := range [][]string{{"a", "b"}, {"b"}, {"*"}} {
		first := ann.list(limit(1))
		want := ann.names()
		if _, err := ann.tryList(limit(1), continued(first.Continue)); err != nil {
			t.Fatalf("the next page under the same rules: %v", err)
		}
		h.front.allow("ann", change...)
		h.eventually("the rules have changed", func() (bool, string) {
			got := ann.names()
			return !slices.Equal(got, want), fmt.Sprint(got)
		})
		if _, err := ann.tryList(limit(1), continued(first.Continue)); !apierrors.IsResourceExpired(err) {
			t.Errorf("the next page after a grant of %v: %v, want 410", change, err)
		}
		if _, err := ann.tryList(exactly(first.ResourceVersion)); !apierrors.IsResourceExpired(err) {
			t.Errorf("a list at the old version after a grant of %v: %v, want 410", change, err)
		}
	}
}

func TestVisibility_RulesChangedWithoutReplica(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	first, stop := h.stoppableReplica()
	past := h.client(first, someone("ann")).list()
	expectNames(t, namesOf(past), "c1.a", "c2.a")
	stop()
	h.front.allow("ann", "b")
	second := h.replica()
	ann := h.client(second, someone("ann"))
	expectNames(t, ann.names(), "c1.b", "c4.b")
	// Its informer has the old members: it must list again, or get the change.
	if w, err := ann.tryWatch(t.Context(), version(past.ResourceVersion)); !apierrors.IsResourceExpired(err) {
		must(t, err)
		if got, _ := w.next(); got.Type != watch.Error && got.String() != "DELETED c1.a" {
			t.Errorf("got %v, want 410 or what has changed", got)
		}
	}
}

// TestVisibility_RedundantRuleCausesNoEvents: a rule that grants nothing more than others do is no change.
func TestVisibility_RedundantRuleCausesNoEvents(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	ann := h.client(r, someone("ann"))
	w := ann.watch(version(ann.list().ResourceVersion), bookmarks)
	h.front.allow("group:system:authenticated", "a")
	h.front.allow("bob", "a")
	h.client(r, someone("bob")).awaitNames("c1.a", "c2.a")
	h.deleteCluster("c1")
	if got, _ := w.next(); got.String() != "DELETED c1.a" {
		t.Errorf("got %v, want DELETED c1.a", got)
	}
}

// TestVisibility_OnlyGetGrants: resourceNames and verbs are those of "get managedclustersets": nothing else shows members.
func TestVisibility_OnlyGetGrants(t *testing.T) {
	h := twoSets(t)
	h.front.allow("sentinel", "a")
	create := func(name string, rule rbacv1.PolicyRule) {
		t.Helper()
		roles, bindings := h.front.clientset.RbacV1().ClusterRoles(), h.front.clientset.RbacV1().ClusterRoleBindings()
		_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name,
			ResourceVersion: h.front.next()},
			Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
		must(t, err)
		_, err = bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name,
			ResourceVersion: h.front.next()},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}},
			metav1.CreateOptions{})
		must(t, err)
	}
	create("lister", rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{cluster.GroupName},
		Resources: []string{"managedclustersets"}})
	create("status", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{cluster.GroupName},
		Resources: []string{"managedclustersets/status"}})
	create("members", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"view.clusterhub.dev"},
		Resources: []string{"clustersetmembers"}})
	create("everything", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	r := h.replica()
	h.client(r, someone("sentinel")).awaitNames("c1.a", "c2.a")
	for _, name := range []string{"lister", "status", "members"} {
		expectNames(t, h.client(r, someone(name)).names())
	}
	expectNames(t, h.client(r, someone("everything")).names(), "c1.a", "c2.a", "c1.b", "c4.b")
}

func TestGet_ForbiddenDoesNotDiscloseExistence(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	ctx := as(t.Context(), someone("ann"))
	got, err := r.Get(ctx, "c1.a", &metav1.GetOptions{})
	must(t, err)
	if want := h.client(r, admin).list(byFields("metadata.name=c1.a")).Items[0]; got.(metav1.Object).GetResourceVersion() != want.ResourceVersion {
		t.Errorf("got version %s, the list has %s", got.(metav1.Object).GetResourceVersion(), want.ResourceVersion)
	}
	for _, missing := range []string{"c9.a", "c4.a", "c1.", ".a", "c1", ""} {
		if _, err := r.Get(ctx, missing, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get %q: %v, want 404", missing, err)
		}
	}
	var answers []string
	for _, hidden := range []string{"c1.b", "c9.b", "c1.z"} {
		_, err := r.Get(ctx, hidden, &metav1.GetOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("get %q: %v, want 403", hidden, err)
			continue
		}
		_, set, _ := strings.Cut(hidden, ".")
		answers = append(answers, strings.NewReplacer(hidden, "NAME", fmt.Sprintf("%q", set),
			"SET").Replace(err.Error()))
	}
	if len(slices.Compact(answers)) != 1 {
		t.Errorf("the answers differ in more than the name: %q", answers)
	}
	// A write is visible, also when it is read at another version.
	h.cluster("c5", labelled("region=apac"))
	if _, err := r.Get(ctx, "c5.a", &metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := r.Get(ctx, "c1.a", &metav1.GetOptions{ResourceVersion: "0"}); err != nil {
		t.Error(err)
	}
}
