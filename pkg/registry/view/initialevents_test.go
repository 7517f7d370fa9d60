// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

func TestWatch_InitialEventsBookmark(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	h.front.allow("all", "*")
	h.front.allow("bob", "not-there")
	old := h.replica()
	h.client(old, someone("ann")).awaitNames("c1.a", "c2.a")
	h.client(old, someone("all")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	// The second replica finds the stored rules of the first: it starts with the clock in its state.
	fresh := h.replica()
	h.awaitVisibility(fresh)
	everything := []string{"c1.a", "c1.b", "c2.a", "c4.b"}
	for _, r := range []struct {
		name string
		r    *clustersetmember.REST
	}{{"a replica that saw it happen", old}, {"a replica that found it", fresh}} {
		for _, tc := range []struct {
			name    string
			who     string
			options []option
			want    []string
		}{
			{"root", "", nil, everything},
			{"root of one set", "", []option{byFields("spec.clusterSet=b")}, []string{"c1.b", "c4.b"}},
			{"root of one member", "", []option{byFields("metadata.name=c4.b")}, []string{"c4.b"}},
			{"root of nothing", "", []option{byLabels("none=x")}, nil},
			{"who may see all", "all", nil, everything},
			{"who may see one", "ann", nil, []string{"c1.a", "c2.a"}},
			{"who may see one, by label", "ann", []option{byLabels("stage=prod")}, []string{"c1.a"}},
			{"who may see one, of another", "ann", []option{byFields("spec.clusterSet=b")}, nil},
			{"who may see none that is", "bob", nil, nil},
			{"a stranger", "stranger", nil, nil},
		} {
			for _, at := range []string{"", "0"} {
				t.Run(fmt.Sprintf("%s/%s/from %q", r.name, tc.name, at), func(t *testing.T) {
					var c client
					c = h.client(r.r, admin)
					if tc.who != "" {
						c = h.client(r.r, someone(tc.who))
					}
					c.t = t
					w := c.watch(append(slices.Clone(tc.options), initialEvents, version(at))...)
					end := w.expectInitial(tc.want...)
					if end == "" || end == "0" {
						t.Errorf("the bookmark is at %q", end)
					}
				})
			}
		}
	}
}

// countedReads counts the members that are read for users.
type countedReads struct {
	visibility.Source
	members atomic.Int64
}

func (s *countedReads) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	err := s.Source.GetList(ctx, key, opts, list)
	s.members.Add(int64(len(list.(*view.ClusterSetMemberList).Items)))
	return err
}

func (s *countedReads) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := s.Source.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		if event.Type != watch.Bookmark {
			s.members.Add(1)
		}
		return event, true
	}), nil
}

// TestWatch_StartSkipsForbidden: the watches of a user who may see nothing must not each read the whole fleet.
func TestWatch_StartSkipsForbidden(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	r := h.replica()
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	for _, tc := range []struct {
		who  string
		want []string
	}{{"ann", []string{"c1.a", "c2.a"}}, {"stranger", nil}} {
		reads := &countedReads{Source: r.Visible.Objects}
		counted := readingFrom(r, reads)
		for _, at := range []string{"", "0"} {
			reads.members.Store(0)
			h.client(counted, someone(tc.who)).watch(initialEvents, version(at)).expectInitial(tc.want...)
			if got := reads.members.Load(); got != int64(len(tc.want)) {
				t.Errorf("a watch of %s from %q reads %d members to show %d", tc.who, at, got, len(tc.want))
			}
		}
	}
}

func TestWatch_WithoutResourceVersion(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a")
	first := h.replica()
	h.client(first, someone("ann")).awaitNames("c1.a", "c2.a")
	second := h.replica()
	h.awaitVisibility(second)
	for _, r := range []*clustersetmember.REST{first, second} {
		for _, at := range []string{"", "0"} {
			h.client(r, admin).watch(version(at)).expectUnordered("ADDED c1.a", "ADDED c2.a", "ADDED c1.b",
				"ADDED c4.b")
			w := h.client(r, someone("ann")).watch(version(at))
			w.expect("ADDED c1.a", "ADDED c2.a")
		}
	}
}
