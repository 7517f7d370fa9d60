// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// anchor is the one requirement of a selector by which it is found: a key with values, a key with any value, or nothing (the zero anchor), which
// must be tried on every cluster.
type anchor struct {
	key    string
	values []string
}

// anchorOf returns the requirement that narrows most: equality before existence. The selector itself checks the others.
func anchorOf(s labels.Selector) anchor {
	requirements, selectable := s.Requirements()
	if !selectable {
		return anchor{}
	}
	var exists anchor
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			// A selector may name a value twice.
			return anchor{key: r.Key(), values: slices.Compact(slices.Sorted(slices.Values(r.ValuesUnsorted())))}
		case selection.Exists, selection.GreaterThan, selection.LessThan:
			if exists.key == "" {
				exists.key = r.Key()
			}
		}
	}
	return exists
}

func (x *Index) addAnchor(s *setEntry) {
	switch {
	case s.anchor.key == "":
		x.setsAny = append(x.setsAny, s)
	case len(s.anchor.values) > 0:
		for _, v := range s.anchor.values {
			l := label{s.anchor.key, v}
			x.setsByLabel[l] = append(x.setsByLabel[l], s)
		}
	default:
		x.setsByKey[s.anchor.key] = append(x.setsByKey[s.anchor.key], s)
	}
}

func (x *Index) removeAnchor(s *setEntry) {
	is := func(other *setEntry) bool { return other == s }
	switch {
	case s.anchor.key == "":
		x.setsAny = slices.DeleteFunc(x.setsAny, is)
	case len(s.anchor.values) > 0:
		for _, v := range s.anchor.values {
			l := label{s.anchor.key, v}
			x.setsByLabel[l] = slices.DeleteFunc(x.setsByLabel[l], is)
			if len(x.setsByLabel[l]) == 0 {
				delete(x.setsByLabel, l)
			}
		}
	default:
		k := s.anchor.key
		x.setsByKey[k] = slices.DeleteFunc(x.setsByKey[k], is)
		if len(x.setsByKey[k]) == 0 {
			delete(x.setsByKey, k)
		}
	}
}
