// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func member(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// observed returns a store of members, and a function that returns the sets that it has reported as changed.
func observed() (*members, func() []string) {
	m, changed := newMembers(nil), map[string]bool{}
	m.changed = func(set string) { changed[set] = true }
	return m, func() []string {
		names := slices.Sorted(maps.Keys(changed))
		clear(changed)
		return names
	}
}

func TestMembers_CountedBySetName(t *testing.T) {
	for name, test := range map[string]struct {
		member string
		set    string
		fails  bool
	}{
		"plain":                  {member: "c1.dev", set: "dev"},
		"a set's name has dots":  {member: "c1.dev.example.com", set: "dev.example.com"},
		"no dot":                 {member: "c1", fails: true},
		"no cluster":             {member: ".dev", fails: true},
		"no set":                 {member: "c1.", fails: true},
		"a set named like a sum": {member: "c1.c1", set: "c1"},
	} {
		t.Run(name, func(t *testing.T) {
			m, changed := observed()
			err := m.Add(member(test.member))
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %t", err, test.fails)
			}
			if test.fails {
				return
			}
			if m.count(test.set) != 1 || !slices.Equal(changed(), []string{test.set}) {
				t.Errorf("the member is not counted in %q: %v", test.set, m.sets)
			}
		})
	}
}

// A watch that is resumed may repeat events, and reports every change of a cluster's labels or status.
func TestMembers_RepeatedEventsChangeNothing(t *testing.T) {
	m, changed := observed()
	for _, change := range []struct {
		do   func(any) error
		name string
		want int
		says []string
	}{
		{m.Add, "c1.s", 1, []string{"s"}},
		{m.Add, "c1.s", 1, nil},
		{m.Update, "c1.s", 1, nil},
		{m.Update, "c2.s", 2, []string{"s"}},
		{m.Delete, "c3.s", 2, nil},
		{m.Delete, "c1.s", 1, []string{"s"}},
		{m.Delete, "c1.s", 1, nil},
		{m.Delete, "c2.s", 0, []string{"s"}},
		{m.Delete, "c2.s", 0, nil},
	} {
		if err := change.do(member(change.name)); err != nil {
			t.Fatal(err)
		}
		if got, says := m.count("s"), changed(); got != change.want || !slices.Equal(says, change.says) {
			t.Fatalf("after %s: %d members, changed %v; want %d, %v", change.name, got, says, change.want, change.says)
		}
	}
	if len(m.sets) != 0 {
		t.Errorf("sets without members are kept: %v", m.sets)
	}
}

func TestMembers_ReplacedByList(t *testing.T) {
	m, changed := observed()
	steps := []struct {
		list   []any
		counts map[string]int
		says   []string
	}{
		{
			list:   []any{member("c1.a"), member("c2.a"), member("c1.b"), member("c1.c")},
			counts: map[string]int{"a": 2, "b": 1, "c": 1},
			says:   []string{"a", "b", "c"},
		},
		{
			list:   []any{member("c1.a"), member("c9.b"), member("c1.d")},
			counts: map[string]int{"a": 1, "b": 1, "c": 0, "d": 1},
			says:   []string{"a", "c", "d"},
		},
		{counts: map[string]int{"a": 0, "b": 0, "d": 0}, says: []string{"a", "b", "d"}},
	}
	for i, step := range steps {
		if err := m.Replace(step.list, "1"); err != nil {
			t.Fatal(err)
		}
		if says := changed(); !slices.Equal(says, step.says) {
			t.Errorf("list %d changed %v, want %v", i, says, step.says)
		}
		for set, want := range step.counts {
			if got := m.count(set); got != want {
				t.Errorf("list %d: set %s has %d members, want %d", i, set, got, want)
			}
		}
	}
	if err := m.WaitForSync(t.Context()); err != nil {
		t.Errorf("not synced by a list: %v", err)
	}
}

// The store must accept the form in which the reflector stores the members while it streams them.
func TestMembers_CountedFromCompactForm(t *testing.T) {
	m, _ := observed()
	full := member("c1.s")
	full.Labels = map[string]string{"k": "v"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	lean, err := m.Transformer()(full)
	if err != nil {
		t.Fatal(err)
	}
	if got := lean.(*metav1.PartialObjectMetadata); got.Name != "c1.s" || got.Labels != nil || got.ManagedFields != nil {
		t.Errorf("kept %v, want the name", got)
	}
	unknown := cache.DeletedFinalStateUnknown{Key: "c1.s"}
	if kept, err := m.Transformer()(unknown); err != nil || kept != unknown {
		t.Errorf("%v became %v (%v)", unknown, kept, err)
	}
	if err := m.Replace([]any{lean}, "1"); err != nil || m.count("s") != 1 {
		t.Errorf("%d members (%v), want 1", m.count("s"), err)
	}
	if err := m.Delete(unknown); err != nil || m.count("s") != 0 {
		t.Errorf("%d members (%v), want none", m.count("s"), err)
	}
}
