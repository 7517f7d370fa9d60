// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// server is a ResourceClient that answers each watch with the next of the given functions, and records requests and callbacks in order. After the last
// function it ends the test.
type server struct {
	list    func() (string, error)
	watches []func(*watch.FakeWatcher) error
	cancel  func()
	notes   []string
}

func (s *server) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *server) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	s.note("list %d", options.Limit)
	version, err := s.list()
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
}

func (s *server) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.note("watch %q", options.ResourceVersion)
	if len(s.watches) == 0 {
		s.cancel()
		return nil, ctx.Err()
	}
	answer := s.watches[0]
	s.watches = s.watches[1:]
	w := watch.NewFakeWithChanSize(10, false)
	return w, answer(w)
}

// run watches until all answers of the server are used, and returns its notes.
func (s *server) run(t *testing.T, options Options) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.cancel = cancel
		Run(ctx, s, options, Handler{
			Event:   func(o *metav1.PartialObjectMetadata, deleted bool) { s.note("event %s %t", o.ResourceVersion, deleted) },
			Started: func() { s.note("started") },
			Lost:    func() { s.note("lost") },
			Failed:  func(err error, _ time.Duration) { s.note("failed %t", err != nil) },
		})
	})
	return s.notes
}

func object(version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "o", ResourceVersion: version}}
}

// gone is the event of a resource version that the server no longer has.
func gone(w *watch.FakeWatcher) error {
	w.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
	return nil
}

// TestRun: a watch that ends resumes where it was, and one whose version the server no longer has starts again.
func TestRun(t *testing.T) {
	answers := func() []func(*watch.FakeWatcher) error {
		return []func(*watch.FakeWatcher) error{
			func(w *watch.FakeWatcher) error {
				w.Add(object("5"))
				w.Action(watch.Bookmark, object("7"))
				w.Stop()
				return nil
			},
			gone,
			func(w *watch.FakeWatcher) error { w.Delete(object("9")); w.Stop(); return nil },
		}
	}
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"from the objects": {Options{}, []string{`watch ""`, "started", "event 5 false", "failed false", `watch "7"`, "lost", "failed true", `watch ""`, "started",
			"event 9 true", "failed false", `watch "9"`}},
		"from a list": {Options{FromList: true}, []string{"list 1", `watch "4"`, "started", "event 5 false", "failed false", `watch "7"`, "lost", "failed true",
			"list 1", `watch "4"`, "started", "event 9 true", "failed false", `watch "9"`}},
		"from a version": {Options{Version: "3"}, []string{`watch "3"`, "event 5 false", "failed false", `watch "7"`, "lost", "failed true", `watch ""`, "started",
			"event 9 true", "failed false", `watch "9"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{list: func() (string, error) { return "4", nil }, watches: answers()}
			if got := s.run(t, test.options); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestRun_Errors: after an error the watch resumes, unless its version may be the reason.
func TestRun_Errors(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	decoding := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding").AsObject(errors.New("invalid character"))
	for name, test := range map[string]struct {
		err     error
		event   runtime.Object
		resumes bool
	}{
		"no connection":           {errors.New("connection refused"), nil, true},
		"too many requests":       {apierrors.NewTooManyRequestsError("slower"), nil, true},
		"unavailable":             {apierrors.NewServiceUnavailable("later"), nil, true},
		"etcd has no leader":      {apierrors.NewInternalError(errors.New("no leader")), &apierrors.NewInternalError(errors.New("no leader")).ErrStatus, true},
		"forbidden":               {apierrors.NewForbidden(resource, "", errors.New("no")), &apierrors.NewForbidden(resource, "", errors.New("no")).ErrStatus, false},
		"gone":                    {apierrors.NewResourceExpired("too old"), &apierrors.NewResourceExpired("too old").ErrStatus, false},
		"the kind is not served":  {apierrors.NewNotFound(resource, ""), nil, false},
		"an event without a kind": {nil, decoding, false},
		"another object":          {nil, &metav1.Status{Status: metav1.StatusSuccess}, false},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{`watch "3"`, "lost", "failed true", `watch ""`}
			if test.resumes {
				want = []string{`watch "3"`, "failed true", `watch "3"`}
			}
			if test.err != nil {
				s := &server{watches: []func(*watch.FakeWatcher) error{func(*watch.FakeWatcher) error { return test.err }}}
				if got := s.run(t, Options{Version: "3"}); !slices.Equal(got, want) {
					t.Errorf("refused: got %q, want %q", got, want)
				}
			}
			if test.event != nil {
				kind := watch.Error
				if name == "another object" {
					kind = watch.Added
				}
				s := &server{watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error { w.Action(kind, test.event); return nil }}}
				if got := s.run(t, Options{Version: "3"}); !slices.Equal(got, want) {
					t.Errorf("an event: got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestRun_StartedAfterWatch: changes between a list and its watch are not missed once Started is called, and are until then.
func TestRun_StartedAfterWatch(t *testing.T) {
	listed := 0
	s := &server{
		list: func() (string, error) {
			listed++
			return "4", map[bool]error{true: errors.New("unavailable")}[listed == 1]
		},
		watches: []func(*watch.FakeWatcher) error{
			func(*watch.FakeWatcher) error { return errors.New("unavailable") },
			func(w *watch.FakeWatcher) error { w.Stop(); return nil },
		},
	}
	want := []string{"list 1", "failed true", "list 1", `watch "4"`, "failed true", `watch "4"`, "started", "failed false", `watch "4"`}
	if got := s.run(t, Options{FromList: true}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAttack_UnboundedResourceVersion: an unbounded resource version would stay in memory for as long as the watch lasts.
func TestAttack_UnboundedResourceVersion(t *testing.T) {
	long := strings.Repeat("5", maxVersion+1)
	for name, send := range map[string]func(*watch.FakeWatcher){
		"bookmark": func(w *watch.FakeWatcher) { w.Action(watch.Bookmark, object(long)) },
		"event":    func(w *watch.FakeWatcher) { w.Modify(object(long)) },
	} {
		s := &server{watches: []func(*watch.FakeWatcher) error{func(w *watch.FakeWatcher) error { send(w); return nil }}}
		if got, want := s.run(t, Options{Version: "3"}), []string{`watch "3"`, "lost", "failed true", `watch ""`}; !slices.Equal(got, want) {
			t.Errorf("%s: got %.200q, want %q", name, got, want)
		}
	}
	listed := 0
	s := &server{list: func() (string, error) {
		listed++
		return map[bool]string{true: long}[listed < 3], nil
	}}
	if got, want := s.run(t, Options{FromList: true}), []string{"list 1", "failed true", "list 1", "failed true", "list 1", `watch ""`}; !slices.Equal(got, want) {
		t.Errorf("list: got %.200q, want %q", got, want)
	}
}

// steadily is a ResourceClient whose watches end after a duration, or are refused if it is 0. It counts them.
type steadily struct {
	server
	lasts   time.Duration
	watched int
}

func (s *steadily) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	s.watched++
	if s.lasts == 0 {
		return nil, errors.New("refused")
	}
	w := watch.NewFakeWithChanSize(1, false)
	w.Action(watch.Bookmark, object("5")) // from here the watch resumes, unless it starts again
	ctx, cancel := context.WithTimeout(ctx, s.lasts)
	context.AfterFunc(ctx, func() { cancel(); w.Stop() })
	return w, nil
}

// TestRun_Delays: attempts that fail become rare, watches that last are resumed soon, and all start again after the RestartInterval.
func TestRun_Delays(t *testing.T) {
	for name, test := range map[string]struct {
		lasts, restart             time.Duration
		least, most, starts, fails int
	}{
		"refused":             {0, 0, 4 + 57, 4 + 118, 0, 4 + 57},
		"each ends at once":   {time.Second, 0, 4 + 55, 4 + 118, 1, 4 + 55},
		"each lasts a minute": {time.Minute, 0, 55, 60, 1, 0},
		"restarts":            {24 * time.Hour, 10 * time.Minute, 6, 6, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steadily{lasts: test.lasts}
			starts, fails := 0, 0
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour-time.Minute)
				defer cancel()
				Run(ctx, s, Options{RestartInterval: test.restart}, Handler{
					Event:   func(*metav1.PartialObjectMetadata, bool) {},
					Started: func() { starts++ },
					Failed: func(_ error, delay time.Duration) {
						fails++
						if delay < MinDelay || delay > 2*MaxDelay {
							t.Errorf("the delay is %s", delay)
						}
					},
				})
			})
			if s.watched < test.least || s.watched > test.most || fails < test.fails || test.fails == 0 && fails > 0 {
				t.Errorf("%d watches and %d failures in an hour, want %d to %d, and at least %d", s.watched, fails, test.least, test.most, test.fails)
			}
			if starts != test.starts {
				t.Errorf("%d starts, want %d", starts, test.starts)
			}
		})
	}
}

// TestRun_ResumesAfterLosses: a server that loses several watches soon after their start, such as one that restarts, is watched again within a minute:
// until then no change would be noticed.
func TestRun_ResumesAfterLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &steadily{lasts: time.Second}
		var lost time.Time
		Run(ctx, s, Options{Version: "3"}, Handler{
			Event: func(*metav1.PartialObjectMetadata, bool) {},
			Failed: func(error, time.Duration) {
				if !lost.IsZero() && time.Since(lost) > time.Minute+s.lasts {
					t.Errorf("watch %d started %s after the one before had ended", s.watched, time.Since(lost)-s.lasts)
				}
				lost = time.Now()
				if s.watched == 20 {
					cancel()
				}
			},
		})
	})
}
