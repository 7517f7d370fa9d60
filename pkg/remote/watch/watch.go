// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch watches the metadata of objects on a cluster that may be slow, unavailable or hostile. Nothing of the objects is stored, so that a
// cluster cannot fill the memory of its watchers. At rest, a watch is one request.
//
// client-go's RetryWatcher does not bound what a server sends: it stores resource versions of any length, waits for as long as the server asks, logs
// the server's texts, and retries a watch that is refused with 410 for ever. It also takes one goroutine more for each watch, of which an agent has thousands.
package watch

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// MinDelay is the shortest delay between two attempts to watch. Jitter at most doubles it.
	MinDelay = time.Second
	// MaxDelay is the longest delay between two attempts to watch. Jitter at most doubles it. Until the next attempt no change is noticed, and a watch
	// that ends soon after its start, several times in a row, is usually one of a server that restarts. client-go's informers have the same limit. A
	// server that ends or refuses each watch gets 120 requests an hour at most.
	MaxDelay = 30 * time.Second
	// steady is the minimum duration of a watch that does not count as failed.
	steady = 10 * time.Second
	// maxVersion is the maximum length of a resource version. Those of Kubernetes have 20 digits at most.
	maxVersion = 256
)

// ResourceClient is the part of metadata.Getter that a watch uses.
type ResourceClient interface {
	List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Options select objects, and the resource version from which to watch.
type Options struct {
	LabelSelector, FieldSelector string
	// Version is the resource version to start from. If it is empty, the watch starts at the current one.
	Version string
	// FromList takes the current resource version from a list of at most one object. Otherwise the server first sends all objects as events, which needs
	// no right to list.
	FromList bool
	// RestartInterval is the time after which the watch starts at the current resource version again, without a delay. So changes are found that a
	// server did not report, or no longer reports, such as after a restore from a backup. The default is never.
	RestartInterval time.Duration
}

// Handler has the callbacks of a watch. They are called one at a time. Only Event must be set.
type Handler struct {
	// Event is called with an object that was created or changed, or deleted, or that the selectors no longer select.
	Event func(object *metav1.PartialObjectMetadata, deleted bool)
	// Started is called when the watch has started at the current resource version: earlier changes may be missed, and later ones are not.
	Started func()
	// Lost is called when events may be missed from then on, until Started is called.
	Lost func()
	// Failed is called when the watch could not be started, or was ended early, with the delay until the next attempt. err is nil if the server ended
	// the watch without an error. The texts of err are the server's.
	Failed func(err error, delay time.Duration)
}

// Run watches objects until ctx ends. A watch that ends resumes where it was if the server still has its resource version.
func Run(ctx context.Context, resource ResourceClient, options Options, handler Handler) {
	w := &watcher{ResourceClient: resource, Options: options, Handler: handler, version: options.Version}
	backoff := wait.Backoff{Duration: MinDelay, Factor: 2, Jitter: 1, Steps: 100, Cap: MaxDelay}
	delays, until := backoff, w.nextRestart()
	for ctx.Err() == nil {
		lasted, err := w.watchOnceUntil(ctx, until)
		if ctx.Err() != nil {
			return
		}
		if lasted {
			delays = backoff
		}
		if time.Now().Before(until) {
			delay := delays.Step()
			if !lasted && w.Failed != nil {
				w.Failed(err, delay)
			}
			select {
			case <-ctx.Done():
			case <-time.After(delay):
			}
		}
		if !time.Now().Before(until) {
			w.version, until = "", w.nextRestart()
		}
	}
}

type watcher struct {
	ResourceClient
	Options
	Handler
	// version is the resource version from which the next watch starts.
	version string
	// missed means that Started has to be called.
	missed bool
}

// never is the restart of a watch without a RestartInterval.
const never = 100 * 365 * 24 * time.Hour

func (w *watcher) nextRestart() time.Time { return time.Now().Add(cmp.Or(w.RestartInterval, never)) }

func (w *watcher) watchOnceUntil(ctx context.Context, until time.Time) (lasted bool, err error) {
	if w.RestartInterval == 0 {
		return w.watchOnce(ctx) // without a timer, since an agent has thousands of watches
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return w.watchOnce(ctx)
}

// watchOnce watches until the server ends the watch, and reports whether it lasted.
func (w *watcher) watchOnce(ctx context.Context) (lasted bool, err error) {
	options := metav1.ListOptions{LabelSelector: w.LabelSelector, FieldSelector: w.FieldSelector}
	if w.version == "" {
		w.missed = true
		if w.FromList {
			options.Limit = 1
			list, err := w.List(ctx, options)
			if err != nil {
				return false, err
			}
			if !isVersion(list.ResourceVersion) {
				return false, errVersion
			}
			w.version, options.Limit = list.ResourceVersion, 0
		}
	}
	options.ResourceVersion, options.AllowWatchBookmarks = w.version, true
	events, err := w.Watch(ctx, options)
	if err != nil {
		return false, w.resume(err)
	}
	defer events.Stop()
	if w.missed {
		w.missed = false
		if w.Started != nil {
			w.Started()
		}
	}
	began := time.Now()
	for event := range events.ResultChan() {
		err := w.receive(event)
		if err != nil {
			return time.Since(began) > steady, w.resume(err)
		}
	}
	return time.Since(began) > steady, nil
}

var (
	errVersion = errors.New("the server sent a resource version that is too long")
	errObject  = errors.New("the server sent an event of another type")
)

func isVersion(version string) bool { return len(version) <= maxVersion }

// receive handles an event.
func (w *watcher) receive(event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	object, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return errObject
	}
	if !isVersion(object.ResourceVersion) {
		return errVersion
	}
	w.version = object.ResourceVersion
	if event.Type != watch.Bookmark {
		w.Event(object, event.Type == watch.Deleted)
	}
	return nil
}

// resume returns err, after which the next watch resumes at its resource version if it can.
func (w *watcher) resume(err error) error {
	if !isTransient(err) {
		w.version = ""
		if w.Lost != nil {
			w.Lost()
		}
	}
	return err
}

// causeDecoding is the cause of client-go for an event that it could not decode. A watch that resumed before this event would receive it again.
const causeDecoding metav1.CauseType = "ClientWatchDecoding"

// isTransient reports whether an error of a watch says nothing about its resource version, so that the same request may succeed later.
func isTransient(err error) bool {
	if errors.Is(err, errVersion) || errors.Is(err, errObject) || apierrors.HasStatusCause(err, causeDecoding) {
		return false
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonTooManyRequests, metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable,
		metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return true
	}
	return false
}
