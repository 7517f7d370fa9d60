// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// There are few words, so that the same right is often granted twice and revoked once. unmentioned is in no rule.
var (
	roleNames    = []string{"r0", "r1", "r2", "r3", "r4"}
	bindingNames = []string{"b0", "b1", "b2", "b3", "b4", "b5"}
	setNames     = []string{"red", "blue", "green", "*", ""}
	userNames    = []string{"alice", "bob", "*", "", "system:serviceaccount:ns:bot", "system:serviceaccount::bot"}
	groupNames   = []string{"alice", "dev", "ops", "*"}
	unmentioned  = "nobody-mentions-this"
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func some[T any](r *rand.Rand, atMost int, from []T) []T {
	var picked []T
	for range r.IntN(atMost + 1) {
		picked = append(picked, pick(r, from))
	}
	return picked
}

// usually returns one of the first two, which match, in three of four cases.
func usually(r *rand.Rand, from []string) []string {
	if r.IntN(4) > 0 {
		return []string{pick(r, from[:2])}
	}
	return some(r, 3, from)
}

func randomRole(r *rand.Rand, name string) *rbacv1.ClusterRole {
	var rules []rbacv1.PolicyRule
	for range r.IntN(4) {
		p := rbacv1.PolicyRule{
			Verbs:         usually(r, []string{"get", "*", "list", "watch"}),
			APIGroups:     usually(r, []string{testGroup, "*", "", "example.com"}),
			Resources:     usually(r, []string{"managedclustersets", "*", "managedclustersets/bind", "*/bind", "managedclusters"}),
			ResourceNames: some(r, 3, setNames),
		}
		// Without this, half of the roles would grant all names.
		if len(p.ResourceNames) == 0 && r.IntN(3) > 0 {
			p.ResourceNames = []string{pick(r, setNames)}
		}
		rules = append(rules, p)
	}
	return role(name, rules...)
}

func randomBinding(r *rand.Rand, name string) *rbacv1.ClusterRoleBinding {
	b := bind(name, pick(r, append(roleNames, "never")), some(r, 3, []rbacv1.Subject{
		userSubject("alice"), userSubject("bob"), userSubject("*"), userSubject(""), userSubject("system:serviceaccount:ns:bot"),
		groupSubject("alice"), groupSubject("dev"), groupSubject("ops"), groupSubject("*"), groupSubject("system:masters"),
		serviceAccount("ns", "bot"), serviceAccount("", "bot"), serviceAccount("other", "bot"),
		{Kind: "Other", Name: "alice"}, {Kind: "User", Name: "bob", APIGroup: "example.com", Namespace: "ns"},
	})...)
	if r.IntN(10) == 0 {
		b.RoleRef.Kind = "Role"
	}
	if r.IntN(10) == 0 {
		b.RoleRef.APIGroup = "example.com"
	}
	return b
}

func randomUser(r *rand.Rand) user.Info {
	groups := some(r, 3, groupNames)
	if r.IntN(20) == 0 {
		groups = append(groups, "system:masters")
	}
	return someone(pick(r, append(userNames, "nobody")), groups...)
}

// randomEvent makes the same change to the index and to the objects.
func randomEvent(r *rand.Rand, index *Index, o *objects) (changed bool) {
	roleName, bindingName := pick(r, roleNames), pick(r, bindingNames)
	switch r.IntN(8) {
	case 0:
		delete(o.roles, roleName)
		return index.DeleteClusterRole(roleName)
	case 1:
		delete(o.bindings, bindingName)
		return index.DeleteClusterRoleBinding(bindingName)
	case 2, 3, 4:
		o.roles[roleName] = randomRole(r, roleName)
		return index.SetClusterRole(o.roles[roleName])
	default:
		o.bindings[bindingName] = randomBinding(r, bindingName)
		return index.SetClusterRoleBinding(o.bindings[bindingName])
	}
}

// reach describes who may reach what, one subject at a time, with the oracle's result for every name. Two worlds are the same for every user if and
// only if their descriptions are equal: the rights of a user are the union of those of the user's subjects.
func (o *objects) reach(a Attributes) string {
	var text strings.Builder
	say := func(kind, name string, who user.Info) {
		if o.allows(who, a, unmentioned) {
			fmt.Fprintf(&text, "%s %q: all\n", kind, name)
			return
		}
		for _, set := range setNames {
			if o.allows(who, a, set) {
				fmt.Fprintf(&text, "%s %q: %q\n", kind, name, set)
			}
		}
	}
	for _, name := range append(userNames, "system:serviceaccount:other:bot") {
		say("user", name, someone(name))
	}
	for _, name := range groupNames {
		say("group", name, someone("nobody", name))
	}
	return text.String()
}

// rebuilt returns the hash of a new index that gets the objects in a random order.
func (o *objects) rebuilt(r *rand.Rand, a Attributes) string {
	index := NewIndex(a)
	var events []func()
	for _, object := range o.roles {
		events = append(events, func() { index.SetClusterRole(object) })
	}
	for _, object := range o.bindings {
		events = append(events, func() { index.SetClusterRoleBinding(object) })
	}
	r.Shuffle(len(events), func(a, b int) { events[a], events[b] = events[b], events[a] })
	for _, event := range events {
		event()
	}
	return index.Snapshot().Hash()
}

func TestProperty_IndexMatchesRules(t *testing.T) {
	bindSets := getSets
	bindSets.Subresource = "bind"
	for _, asked := range []Attributes{getSets, bindSets} {
		t.Run(asked.Resource+"/"+asked.Subresource, func(t *testing.T) { agrees(t, asked) })
	}
}

func agrees(t *testing.T, attributes Attributes) {
	// Across all runs, there is one hash for each reach, and one reach for each hash.
	hashOf, reachOf := map[string]string{}, map[string]string{}
	asked, mixed := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		index, o := NewIndex(attributes), &objects{map[string]*rbacv1.ClusterRole{}, map[string]*rbacv1.ClusterRoleBinding{}}
		reach := o.reach(attributes)
		for event := range 60 {
			at := fmt.Sprintf("seed %d, event %d", seed, event)
			changed := randomEvent(r, index, o)
			was := reach
			reach = o.reach(attributes)
			if changed != (was != reach) {
				t.Fatalf("%s: changed is %v, from\n%sto\n%s", at, changed, was, reach)
			}
			snapshot := index.Snapshot()
			for range 5 {
				who := randomUser(r)
				names := snapshot.NamesFor(who)
				for _, name := range append(setNames, unmentioned) {
					asked++
					if got, want := names.Has(name), o.allows(who, attributes, name); got != want {
						t.Fatalf("%s: %v may reach %q: index says %v, rules say %v", at, who, name, got, want)
					}
				}
				if names.All != o.allows(who, attributes, unmentioned) {
					t.Fatalf("%s: %v: all is %v", at, who, names.All)
				}
				if sorted := names.Sorted(); !slices.IsSorted(sorted) || len(slices.Compact(sorted)) != names.Len() {
					t.Fatalf("%s: %v: names are not sorted or not distinct: %q", at, who, names.Sorted())
				}
				if names.Len() > 1 {
					mixed++
				}
			}
			hash := snapshot.Hash()
			if other, known := hashOf[reach]; known && other != hash {
				t.Fatalf("%s: two hashes of\n%s", at, reach)
			}
			if other, known := reachOf[hash]; known && other != reach {
				t.Fatalf("%s: one hash of\n%sand\n%s", at, other, reach)
			}
			hashOf[reach], reachOf[hash] = hash, reach
			if event%10 == 0 && o.rebuilt(r, attributes) != hash {
				t.Fatalf("%s: the hash depends on how it came to be", at)
			}
		}
		forget(t, index, o)
	}
	t.Logf("%d questions, %d users with several names, %d different worlds", asked, mixed, len(hashOf))
	if mixed < 1000 || len(hashOf) < 1000 {
		t.Error("the random worlds are too plain to show anything")
	}
}

// forget deletes everything and checks that nothing stays behind.
func forget(t *testing.T, index *Index, o *objects) {
	t.Helper()
	for name := range maps.Keys(o.roles) {
		index.DeleteClusterRole(name)
	}
	for name := range maps.Keys(o.bindings) {
		index.DeleteClusterRoleBinding(name)
	}
	left := len(index.bindings) + len(index.roles) + len(index.listing) + len(index.subjects) + index.held.Len() + index.grants.Len()
	if left != 0 || index.total != (digest{}) {
		t.Fatalf("%d things are left, with digest %s", left, index.total)
	}
}

func TestProperty_SnapshotsAreImmutable(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	index, o := NewIndex(getSets), &objects{map[string]*rbacv1.ClusterRole{}, map[string]*rbacv1.ClusterRoleBinding{}}
	type memory struct {
		snapshot *Snapshot
		said     string
	}
	tell := func(s *Snapshot) string {
		text := s.Hash()
		for _, name := range userNames {
			for _, group := range groupNames {
				text += fmt.Sprint(show(s.NamesFor(someone(name, group))))
			}
		}
		return text
	}
	var memories []memory
	for range 500 {
		randomEvent(r, index, o)
		memories = append(memories, memory{index.Snapshot(), tell(index.Snapshot())})
	}
	for n, m := range memories {
		if now := tell(m.snapshot); now != m.said {
			t.Fatalf("snapshot %d said\n%s\nand says\n%s", n, m.said, now)
		}
	}
}
