// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/test/await"
)

// client is one user at one replica.
type client struct {
	t   testing.TB
	r   registry
	who user.Info
}

// registry is a derived resource at one replica.
type registry interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

func (h *hub) client(r registry, who user.Info) client { return client{h.t, r, who} }

type option func(*internalversion.ListOptions)

func byLabels(selector string) option {
	return func(o *internalversion.ListOptions) {
		s, err := labels.Parse(selector)
		if err != nil {
			panic(err)
		}
		o.LabelSelector = s
	}
}

func byFields(selector string) option {
	return func(o *internalversion.ListOptions) { o.FieldSelector = fields.ParseSelectorOrDie(selector) }
}

func limit(n int64) option { return func(o *internalversion.ListOptions) { o.Limit = n } }

func continued(token string) option {
	return func(o *internalversion.ListOptions) { o.Continue = token }
}

func version(v string) option {
	return func(o *internalversion.ListOptions) { o.ResourceVersion = v }
}

func exactly(v string) option {
	return func(o *internalversion.ListOptions) {
		o.ResourceVersion, o.ResourceVersionMatch = v, metav1.ResourceVersionMatchExact
	}
}

func notOlderThan(v string) option {
	return func(o *internalversion.ListOptions) {
		o.ResourceVersion, o.ResourceVersionMatch = v, metav1.ResourceVersionMatchNotOlderThan
	}
}

func bookmarks(o *internalversion.ListOptions) { o.AllowWatchBookmarks = true }

// initialEvents sets the options of client-go's informers.
func initialEvents(o *internalversion.ListOptions) {
	yes := true
	o.SendInitialEvents, o.AllowWatchBookmarks = &yes, true
	o.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
}

func optionsOf(options []option) *internalversion.ListOptions {
	o := &internalversion.ListOptions{}
	for _, f := range options {
		f(o)
	}
	return o
}

func (c client) tryList(options ...option) (*view.ClusterSetMemberList, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), await.Limit)
	defer cancel()
	list, err := c.r.List(as(ctx, c.who), optionsOf(options))
	if err != nil {
		return nil, err
	}
	if sets, ok := list.(*cluster.ManagedClusterSetList); ok {
		// Most checks of a list are the same for both kinds.
		members := &view.ClusterSetMemberList{ListMeta: sets.ListMeta}
		for i := range sets.Items {
			members.Items = append(members.Items, view.ClusterSetMember{ObjectMeta: sets.Items[i].ObjectMeta})
		}
		return members, nil
	}
	if clusters, ok := list.(*cluster.ManagedClusterList); ok {
		members := &view.ClusterSetMemberList{ListMeta: clusters.ListMeta}
		for i := range clusters.Items {
			expectPlain(c.t, &clusters.Items[i])
			members.Items = append(members.Items, view.ClusterSetMember{ObjectMeta: clusters.Items[i].ObjectMeta})
		}
		return members, nil
	}
	return list.(*view.ClusterSetMemberList), nil
}

// expectPlain verifies that clients get nothing of the internal representation of rows.
func expectPlain(t testing.TB, object metav1.Object) {
	if object.GetNamespace() != "" || object.GetSelfLink() != "" || strings.HasPrefix(object.GetName(), "\x00") {
		t.Errorf("a client gets %q of namespace %q with %q", object.GetName(), object.GetNamespace(), object.GetSelfLink())
	}
}

func (c client) list(options ...option) *view.ClusterSetMemberList {
	c.t.Helper()
	list, err := c.tryList(options...)
	must(c.t, err)
	return list
}

func (c client) names(options ...option) []string {
	c.t.Helper()
	return namesOf(c.list(options...))
}

// awaitNames lists until the members are these: for changes that depend on another etcd, such as changes of the rules.
func (c client) awaitNames(want ...string) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%s sees %v", c.who.GetName(), want), func() (bool, string) {
		list, err := c.tryList()
		if err != nil {
			return false, err.Error()
		}
		return slices.Equal(namesOf(list), want), fmt.Sprint(namesOf(list))
	})
}

func namesOf(list *view.ClusterSetMemberList) []string {
	var names []string
	for _, m := range list.Items {
		names = append(names, m.Name)
	}
	return names
}

func expectNames(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}

// stream is an open watch.
type stream struct {
	t testing.TB
	w watch.Interface
}

func (c client) tryWatch(ctx context.Context, options ...option) (*stream, error) {
	w, err := c.r.Watch(as(ctx, c.who), optionsOf(options))
	if err != nil {
		return nil, err
	}
	c.t.Cleanup(w.Stop)
	return &stream{c.t, w}, nil
}

func (c client) watch(options ...option) *stream {
	c.t.Helper()
	s, err := c.tryWatch(c.t.Context(), options...)
	must(c.t, err)
	return s
}

// change is an event as a client gets it.
type change struct {
	Type    watch.EventType
	Name    string
	Version string
	Object  any
}

func (c change) String() string { return string(c.Type) + " " + c.Name }

func changeOf(event watch.Event) change {
	c := change{Type: event.Type, Object: event.Object}
	switch obj := event.Object.(type) {
	case *metav1.Status:
		c.Name = string(obj.Reason) + ": " + obj.Message
	case metav1.Object:
		c.Name, c.Version = obj.GetName(), obj.GetResourceVersion()
		if event.Type == watch.Bookmark && obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			c.Name = "initial-events-end"
		}
	}
	return c
}

// next returns the next event, including bookmarks. ok is false when the watch has ended.
func (s *stream) next() (c change, ok bool) {
	s.t.Helper()
	timeout := time.NewTimer(await.Limit)
	defer timeout.Stop()
	select {
	case event, ok := <-s.w.ResultChan():
		if !ok {
			return change{}, false
		}
		if object, ok := event.Object.(metav1.Object); ok {
			expectPlain(s.t, object)
		}
		return changeOf(event), true
	case <-timeout.C:
		s.t.Fatal("no event came")
		return change{}, false
	}
}

// nextChange returns the next event that is not a bookmark.
func (s *stream) nextChange() change {
	s.t.Helper()
	for {
		c, ok := s.next()
		if !ok {
			s.t.Fatal("the watch has ended")
		}
		if c.Type != watch.Bookmark {
			return c
		}
	}
}

func (s *stream) expect(want ...string) []change {
	s.t.Helper()
	var got []change
	for _, w := range want {
		c := s.nextChange()
		if c.String() != w {
			s.t.Fatalf("got %v after %v, want %s", c, got, w)
		}
		got = append(got, c)
	}
	return got
}

// expectUnordered receives the wanted events, in any order.
func (s *stream) expectUnordered(want ...string) []change {
	s.t.Helper()
	var got []change
	var texts []string
	for range want {
		c := s.nextChange()
		got = append(got, c)
		texts = append(texts, c.String())
	}
	slices.Sort(texts)
	slices.Sort(want)
	if !slices.Equal(texts, want) {
		s.t.Fatalf("got  %v\nwant %v", texts, want)
	}
	return got
}

// expectInitial receives the initial events and the bookmark that ends them, and returns the bookmark's version.
func (s *stream) expectInitial(want ...string) string {
	s.t.Helper()
	var got []string
	for {
		c, ok := s.next()
		if !ok {
			s.t.Fatalf("the watch ended after %v", got)
		}
		if c.Name == "initial-events-end" {
			slices.Sort(got)
			expectNames(s.t, got, want...)
			return c.Version
		}
		if c.Type != watch.Added {
			s.t.Fatalf("unexpected %v", c)
		}
		got = append(got, c.Name)
	}
}

func number(t testing.TB, v string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(v, 10, 64)
	must(t, err)
	return n
}

func describe(changes []change) string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, ", ")
}
