// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWatch_InitialEventsSemantics has the table of k8s.io/apiserver/pkg/storage/testing's RunWatchSemantics, which writes pods itself and so
// cannot be run on a computed storage: the initial events of a watch for its options.
func TestWatch_InitialEventsSemantics(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	past := h.client(r, admin).list().ResourceVersion
	h.cluster("c5", labelled("region=apac"))
	now := h.client(r, admin).list().ResourceVersion

	yes, no := true, false
	before, state := []string{"ADDED c5.a"}, []string{"ADDED c1.a", "ADDED c2.a", "ADDED c5.a"}
	opened := map[string]*stream{}
	for _, tc := range []struct {
		name      string
		initial   *bool
		bookmarks bool
		version   string
		want      []string
		end       bool
	}{
		{"the default from no version", nil, true, "", state, false},
		{"the default from 0", nil, true, "0", state, false},
		{"the default from a version", nil, true, past, before, false},
		{"the default from the present", nil, true, now, nil, false},
		{"wanted, with bookmarks, from no version", &yes, true, "", state, true},
		{"wanted, with bookmarks, from 0", &yes, true, "0", state, true},
		{"wanted, with bookmarks, from a version", &yes, true, past, state, true},
		{"wanted, without bookmarks, from no version", &yes, false, "", state, false},
		{"wanted, without bookmarks, from 0", &yes, false, "0", state, false},
		{"wanted, without bookmarks, from a version", &yes, false, past, state, false},
		{"not wanted, from no version", &no, true, "", nil, false},
		{"not wanted, from 0", &no, true, "0", nil, false},
		{"not wanted, from a version", &no, false, past, before, false},
	} {
		for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
			name := tc.name + ", by " + who.who.GetName()
			t.Run(name, func(t *testing.T) {
				w := who.watch(byFields("spec.clusterSet=a"), func(o *internalversion.ListOptions) {
					o.SendInitialEvents, o.AllowWatchBookmarks, o.ResourceVersion = tc.initial, tc.bookmarks, tc.version
					if tc.initial != nil {
						o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
					}
				})
				opened[name] = w
				w.expectUnordered(slices.Clone(tc.want)...)
				if tc.end {
					c, _ := w.next()
					if c.Name != "initial-events-end" || number(t, c.Version) < number(t, now) {
						t.Fatalf("got %v at %s after the initial events, want their bookmark at %s or later", c,
							c.Version, now)
					}
				}
			})
		}
	}
	// Then comes the next change, whatever the watch started with.
	h.cluster("c6", labelled("region=apac"))
	for name, w := range opened {
		if c := w.nextChange(); c.String() != "ADDED c6.a" {
			t.Errorf("%s: got %v, want ADDED c6.a", name, c)
		}
	}
}
