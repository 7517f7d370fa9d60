// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"testing"
)

func TestNames_Has(t *testing.T) {
	for _, test := range []struct {
		names Names
		name  string
		want  bool
	}{
		{NamesOf("b", "a"), "a", true},
		{NamesOf("b", "a"), "b", true},
		{NamesOf("b", "a"), "c", false},
		{NamesOf("b", "a"), "", false},
		{NamesOf(""), "", true},
		{Names{}, "a", false},
		{Names{All: true}, "a", true},
		{Names{All: true}, "", true},
	} {
		if got := test.names.Has(test.name); got != test.want {
			t.Errorf("%v has %q: %v", show(test.names), test.name, got)
		}
	}
}

func TestNames_EmptyAndLen(t *testing.T) {
	for _, test := range []struct {
		names Names
		empty bool
		len   int
	}{
		{Names{}, true, 0},
		{NamesOf(), true, 0},
		{NamesOf(""), false, 1},
		{NamesOf("a", "b", "a"), false, 2},
		{Names{All: true}, false, 0},
	} {
		if test.names.Empty() != test.empty || test.names.Len() != test.len {
			t.Errorf("%v: empty %v, length %d", show(test.names), test.names.Empty(), test.names.Len())
		}
	}
}

func TestNames_AllIsNotEmptySet(t *testing.T) {
	if (Names{All: true}).Equal(Names{}) || !(Names{}).Equal(NamesOf()) || NamesOf("a").Equal(NamesOf("b")) {
		t.Error("Equal confuses sets")
	}
}

func TestNames_Diff(t *testing.T) {
	all := Names{All: true}
	for _, test := range []struct {
		name         string
		old, new     Names
		gained, lost []string
		listed       bool
	}{
		{"nothing", NamesOf("a"), NamesOf("a"), nil, nil, true},
		{"from none", Names{}, NamesOf("b", "a"), []string{"a", "b"}, nil, true},
		{"to none", NamesOf("b", "a"), Names{}, nil, []string{"a", "b"}, true},
		{"both ways", NamesOf("a", "c", "d", "f"), NamesOf("b", "c", "e", "f", "g"), []string{"b", "e", "g"}, []string{"a", "d"}, true},
		{"all stay", all, all, nil, nil, true},
		{"to all", NamesOf("a"), all, nil, nil, false},
		{"from all", all, NamesOf("a"), nil, nil, false},
		{"from all to none", all, Names{}, nil, nil, false},
	} {
		gained, lost, listed := test.new.Diff(test.old)
		if !slices.Equal(gained, test.gained) || !slices.Equal(lost, test.lost) || listed != test.listed {
			t.Errorf("%s: gained %v, lost %v, listed %v", test.name, gained, lost, listed)
		}
	}
}

func TestNames_AreImmutable(t *testing.T) {
	in := []string{"b", "a"}
	names := NamesOf(in...)
	in[0] = "x"
	names.Sorted()[0] = "y"
	if !names.Equal(NamesOf("a", "b")) || in[1] != "a" {
		t.Errorf("got %v, and %v went in", show(names), in)
	}

	// A role that is the only one of its subject is returned as it was compiled.
	object := role("r", rule("red", "blue"))
	index := NewIndex(getSets)
	index.SetClusterRole(object)
	index.SetClusterRoleBinding(bind("b", "r", userSubject("alice")))
	index.Snapshot().NamesFor(someone("alice")).Sorted()[0] = "x"
	object.Rules[0].ResourceNames[0] = "y"
	if got := index.Snapshot().NamesFor(someone("alice")); !got.Equal(NamesOf("blue", "red")) {
		t.Errorf("got %v", show(got))
	}
	if want := []string{"y", "blue"}; !slices.Equal(object.Rules[0].ResourceNames, want) {
		t.Errorf("the object that was handed in has been sorted: %v", object.Rules[0].ResourceNames)
	}
}
