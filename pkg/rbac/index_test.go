// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Each step states what it does, what alice may reach after it, and whether the reach of any user has changed.
func TestIndex_EventsInAnyOrder(t *testing.T) {
	type step struct {
		name    string
		event   func(*Index) bool
		want    Names
		changed bool
	}
	set := func(object any) func(*Index) bool {
		return func(i *Index) bool {
			if r, ok := object.(*rbacv1.ClusterRole); ok {
				return i.SetClusterRole(r)
			}
			return i.SetClusterRoleBinding(object.(*rbacv1.ClusterRoleBinding))
		}
	}
	unset := func(kind, name string) func(*Index) bool {
		return func(i *Index) bool {
			if kind == "role" {
				return i.DeleteClusterRole(name)
			}
			return i.DeleteClusterRoleBinding(name)
		}
	}
	alice, bob := userSubject("alice"), userSubject("bob")

	for name, steps := range map[string][]step{
		"a binding before its role": {
			{"binding", set(bind("b", "r", alice)), none, false},
			{"role", set(role("r", rule("red"))), red, true},
			{"role goes", unset("role", "r"), none, true},
			{"role comes back", set(role("r", rule("blue"))), NamesOf("blue"), true},
			{"binding goes", unset("binding", "b"), none, true},
			{"role goes again", unset("role", "r"), none, false},
		},
		"a role before its binding": {
			{"role", set(role("r", rule("red"))), none, false},
			{"binding", set(bind("b", "r", alice)), red, true},
			{"same again", set(bind("b", "r", alice)), red, false},
			{"same subjects, written otherwise", set(bind("b", "r", alice, alice)), red, false},
			{"another subject", set(bind("b", "r", bob)), none, true},
			{"both", set(bind("b", "r", bob, alice)), red, true},
		},
		"a role that changes": {
			{"binding", set(bind("b", "r", alice)), none, false},
			{"red", set(role("r", rule("red"))), red, true},
			{"same again", set(role("r", rule("red"))), red, false},
			{"same names, written otherwise", set(role("r", rule("red"), rule("red"))), red, false},
			{"more", set(role("r", rule("red", "blue"))), NamesOf("blue", "red"), true},
			{"all", set(role("r", rule())), all, true},
			{"other", set(role("r", rule("green"))), NamesOf("green"), true},
			{"nothing", set(role("r")), none, true},
			{"all, from nothing", set(role("r", rule())), all, true},
		},
		"a binding that was made again for another role": {
			{"red", set(role("red", rule("red"))), none, false},
			{"blue", set(role("blue", rule("blue"))), none, false},
			{"rot", set(role("rot", rule("red"))), none, false},
			{"red binding", set(bind("b", "red", alice)), red, true},
			{"blue binding", set(bind("b", "blue", alice)), NamesOf("blue"), true},
			{"red binding again", set(bind("b", "red", alice)), red, true},
			{"other role, same names", set(bind("b", "rot", alice)), red, false},
		},
		"a name that comes by two ways goes with the last": {
			{"role 1", set(role("r1", rule("red"))), none, false},
			{"role 2", set(role("r2", rule("red", "blue"))), none, false},
			{"binding 1", set(bind("b1", "r1", alice)), red, true},
			{"binding 1 again, by another name", set(bind("b1b", "r1", alice)), red, false},
			{"binding 2", set(bind("b2", "r2", alice)), NamesOf("blue", "red"), true},
			{"role 2 loses red", set(role("r2", rule("blue"))), NamesOf("blue", "red"), false},
			{"role 1 goes", unset("role", "r1"), NamesOf("blue"), true},
			{"role 1 comes back", set(role("r1", rule("red"))), NamesOf("blue", "red"), true},
			{"one binding to it goes", unset("binding", "b1"), NamesOf("blue", "red"), false},
			{"the other goes", unset("binding", "b1b"), NamesOf("blue"), true},
		},
		"all hides what is listed, and shows it again": {
			{"role all", set(role("all", rule())), none, false},
			{"role red", set(role("red", rule("red"))), none, false},
			{"all", set(bind("all", "all", alice)), all, true},
			{"red", set(bind("red", "red", alice)), all, false},
			{"red turns blue", set(role("red", rule("blue"))), all, false},
			{"all goes", unset("binding", "all"), NamesOf("blue"), true},
		},
		"what nobody has": {
			{"a binding that is not there", unset("binding", "b"), none, false},
			{"a role that is not there", unset("role", "r"), none, false},
			{"an irrelevant role", set(role("pods", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"*"}})), none, false},
			{"a binding to it", set(bind("pods", "pods", alice)), none, false},
			{"system:masters", set(role("all", rule())), none, false},
			{"may everything as it is", set(bind("masters", "all", groupSubject("system:masters"))), none, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			index := NewIndex(getSets)
			for _, step := range steps {
				before := index.Snapshot()
				if changed := step.event(index); changed != step.changed {
					t.Errorf("%s: changed is %v", step.name, changed)
				}
				after := index.Snapshot()
				if got := after.NamesFor(someone("alice")); !got.Equal(step.want) {
					t.Errorf("%s: got %v, want %v", step.name, show(got), show(step.want))
				}
				if (before.Hash() != after.Hash()) != step.changed {
					t.Errorf("%s: hash was %s, is %s", step.name, before.Hash(), after.Hash())
				}
			}
		})
	}
}

func TestIndex_EmptyRolesLeaveNoTrace(t *testing.T) {
	index := NewIndex(getSets)
	index.SetClusterRole(role("r", rule("red")))
	index.SetClusterRoleBinding(bind("b", "r", userSubject("alice")))
	before := index.Snapshot()

	pods := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	for n := range 100 {
		name := fmt.Sprintf("other-%d", n)
		if index.SetClusterRole(role(name, pods)) || index.SetClusterRoleBinding(bind(name, name, userSubject("alice"))) {
			t.Fatalf("%s has changed what somebody may reach", name)
		}
	}
	if index.Snapshot() != before {
		t.Error("a new snapshot was made for roles that grant nothing")
	}
	if index.held.Len() != 1 || index.grants.Len() != 1 || len(index.subjects) != 1 {
		t.Errorf("readers carry %d holdings and %d grants of %d subjects", index.held.Len(), index.grants.Len(), len(index.subjects))
	}
	if len(index.subjects[subject{name: "alice"}].roles) != 1 {
		t.Error("alice's changes are measured against roles that grant nothing")
	}
}

// Allocations stand for work here, because they do not depend on the machine: processing all subjects again takes thousands.
func TestIndex_BindingCostFollowsChangedSubjects(t *testing.T) {
	index := NewIndex(getSets)
	index.SetClusterRole(role("r", rule("red")))
	var subjects []rbacv1.Subject
	for n := range 1000 {
		subjects = append(subjects, userSubject(fmt.Sprint("user-", n)))
	}
	reversed := slices.Clone(subjects)
	slices.Reverse(reversed)
	states := []*rbacv1.ClusterRoleBinding{bind("b", "r", subjects[1:]...), bind("b", "r", reversed...)}
	n := 0
	work := testing.AllocsPerRun(100, func() {
		if !index.SetClusterRoleBinding(states[n%2]) {
			t.Fatal("unchanged")
		}
		index.Snapshot()
		n++
	})
	if work > 100 {
		t.Errorf("one subject more or less takes %v allocations", work)
	}
}

func TestSnapshot_UnchangedIsIdentical(t *testing.T) {
	index := NewIndex(getSets)
	first := index.Snapshot()
	index.SetClusterRoleBinding(bind("b", "r", userSubject("alice")))
	if index.Snapshot() != first {
		t.Error("a binding to no role makes a new snapshot")
	}
	index.SetClusterRole(role("r", rule("red")))
	second := index.Snapshot()
	if second == first || second.Hash() == first.Hash() {
		t.Error("a grant makes no new snapshot")
	}
	if !first.NamesFor(someone("alice")).Empty() {
		t.Error("a grant shows in an older snapshot")
	}
	index.SetClusterRole(role("r", rule("red")))
	if index.Snapshot() != second {
		t.Error("a resync makes a new snapshot")
	}
}

// The term of a pair must differ from that of another pair whose concatenation is the same.
func TestHash_SeparatesNeighbors(t *testing.T) {
	one := func(who rbacv1.Subject, names ...string) string {
		index := NewIndex(getSets)
		index.SetClusterRole(role("r", rule(names...)))
		index.SetClusterRoleBinding(bind("b", "r", who))
		return index.Snapshot().Hash()
	}
	long := strings.Repeat("x", 300)
	seen := map[string]string{strings.Repeat("0", 64): "nothing"}
	for what, hash := range map[string]string{
		"user a, all":          one(userSubject("a")),
		"user a, empty name":   one(userSubject("a"), ""),
		"group a, all":         one(groupSubject("a")),
		"user a, bc":           one(userSubject("a"), "bc"),
		"user ab, c":           one(userSubject("ab"), "c"),
		"user an, c":           one(userSubject("an"), "c"),
		"user a, nc":           one(userSubject("a"), "nc"),
		"user a, b and c":      one(userSubject("a"), "b", "c"),
		"group a, bc":          one(groupSubject("a"), "bc"),
		"long user":            one(userSubject(long), "a"),
		"longer user":          one(userSubject(long+"x"), "a"),
		"long user, long name": one(userSubject(long), long),
	} {
		if other, found := seen[hash]; found {
			t.Errorf("%s has the hash of %s", what, other)
		}
		seen[hash] = what
	}
}

// Subjects whose rights are ignored change nothing, whatever their names.
func TestIndex_IgnoresExcludedSubjects(t *testing.T) {
	ignoring := getSets
	ignoring.Ignored = []string{"agents:", "aws:"}
	index := NewIndex(ignoring)
	index.SetClusterRole(role("r", rule("red")))
	before := index.Snapshot().Hash()
	if index.SetClusterRoleBinding(bind("b", "r", userSubject("agents:c1"), groupSubject("aws:c1"), groupSubject("agents:"))) || index.Snapshot().Hash() != before {
		t.Error("what is ignored is a change")
	}
	if names := index.Snapshot().NamesFor(someone("agents:c1", "aws:c1", "agents:")); !names.Empty() {
		t.Errorf("who is ignored has %v", show(names))
	}
	if !index.SetClusterRoleBinding(bind("b", "r", userSubject("agents:c1"), userSubject("agent"), groupSubject("my-agents:"))) {
		t.Error("others are no change")
	}
	for _, who := range []user.Info{someone("agent"), someone("x", "my-agents:")} {
		if names := index.Snapshot().NamesFor(who); !names.Equal(red) {
			t.Errorf("%s has %v", who.GetName(), show(names))
		}
	}
}
