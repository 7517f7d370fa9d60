// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

const benchBindings = 10_000

// teams returns the index of a hub with 10,000 bindings: 1,000 roles on 5 sets each, every role bound 10 times, each time to a user and a group. In
// addition it has the same number of bindings that grant nothing, as the agents of a fleet have.
func teams() *Index {
	index := NewIndex(getSets)
	for n := range benchBindings / 10 {
		index.SetClusterRole(teamRole(n, 5))
	}
	for n := range benchBindings {
		index.SetClusterRoleBinding(teamBinding(n))
	}
	for n := range benchBindings {
		name := fmt.Sprint("agent-", n)
		index.SetClusterRole(role(name, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{testGroup}, Resources: []string{"managedclusters"}}))
		index.SetClusterRoleBinding(bind(name, name, groupSubject(name)))
	}
	return index
}

func teamRole(n, sets int) *rbacv1.ClusterRole {
	var names []string
	for s := range sets {
		names = append(names, fmt.Sprintf("set-%d", (n+s)%1000))
	}
	return role(fmt.Sprint("team-", n), rule(names...))
}

func teamBinding(n int) *rbacv1.ClusterRoleBinding {
	return bind(fmt.Sprint("binding-", n), fmt.Sprint("team-", n/10),
		userSubject(fmt.Sprint("user-", n%3000)), groupSubject(fmt.Sprint("group-", n%500)))
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		teams().Snapshot()
	}
}

func BenchmarkOneBindingAndSnapshot(b *testing.B) {
	index := teams()
	index.Snapshot()
	with, without := teamBinding(4711), teamBinding(4711)
	without.Subjects = without.Subjects[:1]
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if !index.SetClusterRoleBinding([]*rbacv1.ClusterRoleBinding{without, with}[n%2]) {
			b.Fatal("unchanged")
		}
		index.Snapshot()
	}
}

func BenchmarkOneRoleAndSnapshot(b *testing.B) {
	index := teams()
	index.Snapshot()
	objects := []*rbacv1.ClusterRole{teamRole(471, 6), teamRole(471, 5)}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		index.SetClusterRole(objects[n%2])
		index.Snapshot()
	}
}

// One role that every user has gains or loses one name.
func BenchmarkOneRoleOf10000SubjectsAndSnapshot(b *testing.B) {
	index := NewIndex(getSets)
	for n := range benchBindings {
		index.SetClusterRoleBinding(bind(fmt.Sprint("b", n), "shared", userSubject(fmt.Sprint("user-", n))))
	}
	objects := []*rbacv1.ClusterRole{role("shared", rule("red", "blue")), role("shared", rule("red"))}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if !index.SetClusterRole(objects[n%2]) {
			b.Fatal("unchanged")
		}
		index.Snapshot()
	}
}

// oneGroup returns an index in which one group is bound 10,000 times, each time to a role of its own that grants one set of its own and one in
// common: the worst case of the union.
func oneGroup() *Index {
	index := NewIndex(getSets)
	for n := range benchBindings {
		name := fmt.Sprint("one-", n)
		index.SetClusterRole(role(name, rule(name, "common")))
		index.SetClusterRoleBinding(bind(name, name, groupSubject("everyone")))
	}
	return index
}

func BenchmarkBuildOneGroupOf10000Roles(b *testing.B) {
	for b.Loop() {
		oneGroup().Snapshot()
	}
}

func BenchmarkOneBindingOfAGroupOf10000Roles(b *testing.B) {
	index := oneGroup()
	objects := []*rbacv1.ClusterRoleBinding{bind("one-4711", "one-4711"), bind("one-4711", "one-4711", groupSubject("everyone"))}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if !index.SetClusterRoleBinding(objects[n%2]) {
			b.Fatal("unchanged")
		}
		index.Snapshot()
	}
}

func BenchmarkNamesFor(b *testing.B) {
	for _, bench := range []struct {
		name     string
		snapshot *Snapshot
		user     string
		groups   []string
	}{
		{"a user of 3 bindings, 2 groups of 20", teams().Snapshot(), "user-7", []string{"group-7", "group-8", "system:authenticated"}},
		{"nobody", teams().Snapshot(), "stranger", []string{"system:authenticated"}},
		{"a group of 10,000 roles", oneGroup().Snapshot(), "alice", []string{"everyone"}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			who := someone(bench.user, bench.groups...)
			b.ReportAllocs()
			for b.Loop() {
				bench.snapshot.NamesFor(who)
			}
		})
	}
}
