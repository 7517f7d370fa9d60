// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"
)

// Names is a set of names: all existing and future names, or those listed. The zero value is the empty set. It never changes and may be shared.
type Names struct {
	// All means that every name is in the set, even those that are in no rule.
	All bool

	sorted []string // ascending and distinct; nil if All
}

// NamesOf returns the set of the given names.
func NamesOf(names ...string) Names {
	return newNames(slices.Clone(names))
}

// newNames returns the set of names. It takes ownership of the slice.
func newNames(names []string) Names {
	slices.Sort(names)
	return Names{sorted: slices.Compact(names)}
}

// Has reports whether the name is in the set.
func (n Names) Has(name string) bool {
	if n.All {
		return true
	}
	_, found := slices.BinarySearch(n.sorted, name)
	return found
}

// Includes reports whether every name of the other set is in this one.
func (n Names) Includes(other Names) bool {
	if n.All || other.All {
		return n.All
	}
	_, missing := difference(other.sorted, n.sorted, cmp.Compare[string])
	return len(missing) == 0
}

// Empty reports whether no name is in the set.
func (n Names) Empty() bool { return !n.All && len(n.sorted) == 0 }

// Len returns the number of listed names: 0 if All.
func (n Names) Len() int { return len(n.sorted) }

// Sorted returns the names in ascending order. It is empty if All, because all names cannot be listed.
func (n Names) Sorted() []string { return slices.Clone(n.sorted) }

// Equal reports whether both sets have the same names.
func (n Names) Equal(other Names) bool {
	return n.All == other.All && slices.Equal(n.sorted, other.sorted)
}

// Diff returns, in ascending order, the names that the set has gained and lost since old. listed is false if only one of the two is All: the
// difference is then infinite, and the caller must check all existing objects.
func (n Names) Diff(old Names) (gained, lost []string, listed bool) {
	if n.All != old.All {
		return nil, nil, false
	}
	gained, lost = difference(old.sorted, n.sorted, cmp.Compare[string])
	return gained, lost, true
}

// union returns the set of the names that are in any of the sets.
func union(sets []Names) Names {
	if len(sets) == 1 {
		return sets[0]
	}
	var names []string
	for _, set := range sets {
		if set.All {
			return Names{All: true}
		}
		names = append(names, set.sorted...)
	}
	return newNames(names)
}

// difference compares two ascending lists of distinct elements.
func difference[T any](from, to []T, compare func(a, b T) int) (gained, lost []T) {
	for len(from) > 0 && len(to) > 0 {
		switch order := compare(from[0], to[0]); {
		case order < 0:
			lost, from = append(lost, from[0]), from[1:]
		case order > 0:
			gained, to = append(gained, to[0]), to[1:]
		default:
			from, to = from[1:], to[1:]
		}
	}
	return append(gained, to...), append(lost, from...)
}
