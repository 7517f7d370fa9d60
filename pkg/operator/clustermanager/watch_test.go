// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// watches is a resource that returns the given watches, and records the calls in order.
type watches struct {
	metadata.ResourceInterface
	given []func(*watch.FakeWatcher)
	notes chan string
}

func (w *watches) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w.notes <- "begins from " + options.ResourceVersion
	if len(w.given) == 0 {
		return nil, ctx.Err()
	}
	f := watch.NewFake()
	go w.given[0](f)
	w.given = w.given[1:]
	return f, nil
}

// TestFollow_TellsWhenItMayHaveMissedSomething: a watch that starts without a version does not report previous deletions. follow calls lost then, and
// only then.
func TestFollow_TellsWhenItMayHaveMissedSomething(t *testing.T) {
	object := func(version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", ResourceVersion: version}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &watches{notes: make(chan string), given: []func(*watch.FakeWatcher){
		func(f *watch.FakeWatcher) { f.Add(object("5")); f.Action(watch.Bookmark, object("7")); f.Stop() },
		func(f *watch.FakeWatcher) {
			f.Error(&metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		},
		func(f *watch.FakeWatcher) { f.Delete(object("9")); cancel(); f.Stop() },
	}}
	go func() {
		defer close(w.notes)
		follow(ctx, w, metav1.ListOptions{}, func(metav1.Object) { w.notes <- "changed" }, func() { w.notes <- "lost" })
	}()
	var got []string
	for note := range w.notes {
		got = append(got, note)
	}
	if want := []string{"begins from ", "lost", "changed", "begins from 7", "begins from ", "lost", "changed"}; !slices.Equal(got, want) {
		t.Errorf("it was %q, want %q", got, want)
	}
}

// TestAttack_AVersionWithoutEndIsNotKept: an unbounded resource version would stay in memory for as long as the watch lasts.
func TestAttack_AVersionWithoutEndIsNotKept(t *testing.T) {
	for version, want := range map[string]string{"5": "5", strings.Repeat("5", 1<<20): ""} {
		w := watch.NewFake()
		go func() {
			w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
			w.Stop()
		}()
		if got := read(w, "4", func(metav1.Object) {}); got != want {
			t.Errorf("of a version of %d bytes there are %d", len(version), len(got))
		}
	}
}
