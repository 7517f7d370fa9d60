// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/clusterhub/clusterhub/pkg/operator/outer"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

const (
	// firstPause is the time until the first retry of a failed watch, and longestPause the time after many failures.
	firstPause, longestPause = time.Second, 2 * time.Minute
	// steady is the minimum duration of a watch that does not count as failed.
	steady = 10 * time.Second
	// headStart is the maximum time to wait for watches before the first reconcile.
	headStart = 5 * time.Second
	// anew is the time after which watches restart, with a reconcile, and twice that the maximum: changes that a server did not report, or no longer
	// reports, such as after a restore from a backup, are found then.
	anew = 4 * time.Hour
	// lookAnyway is the interval of reconciles where no watch reports changes, such as while a watch does not start.
	lookAnyway = 10 * time.Minute
)

// watched is a set of objects of one kind on a cluster.
type watched struct {
	kind         kind
	label, field string
}

// listening is closed when watches have started.
type listening <-chan struct{}

// audience is the receiver of the events of one cluster's watches.
type audience struct {
	*sights
	// every is the interval between restarts of the watches: all at one time, so that one reconcile follows, and at a different time for each
	// cluster.
	every time.Duration
	// missing limits the reconciles while a watch does not start.
	missing *rate.Limiter
}

// listen starts all watches.
func listen(ctx context.Context, c metadata.Interface, s *sights, all []watched) listening {
	a := &audience{s, anew + time.Duration(rand.Int64N(int64(anew))), rate.NewLimiter(rate.Every(lookAnyway), 1)}
	var first sync.WaitGroup
	for _, w := range all {
		first.Add(1)
		go w.follow(ctx, c.Resource(w.kind.gvr()), a, first.Done)
	}
	tried := make(chan struct{})
	go func() { first.Wait(); close(tried) }()
	return tried
}

// wait waits until the watches have started. What is read before has to be read again. If they do not start, wait returns after headStart.
func (l listening) wait(ctx context.Context) {
	select {
	case <-l:
	case <-time.After(headStart):
	case <-ctx.Done():
	}
}

// follow watches objects until the context ends: it reports each object that is created, changed or deleted, and that it may have missed changes. It
// stores no objects: a cluster with more objects than it claims costs no memory. No list is repeated while a watch lasts, nor when it ends and the
// server still has its resource version, except that all watches restart after some hours. If a watch cannot be started for minutes, such as a
// forbidden one, follow causes a reconcile now and then. It calls tried after the first attempt to start.
func (w watched) follow(ctx context.Context, objects metadata.Getter, a *audience, tried func()) {
	once := sync.OnceFunc(tried)
	defer once()
	version, pause, until := "", firstPause, time.Now().Add(a.every)
	for ctx.Err() == nil {
		if now := time.Now(); !now.Before(until) {
			version, until = "", now.Add(a.every)
		}
		var lasted bool
		version, lasted = w.once(ctx, objects, version, until, a.sights, once)
		if lasted {
			pause = firstPause
		} else if pause == longestPause && a.missing.Allow() {
			a.lose()
		}
		if !time.Now().Before(until) {
			continue // at once: one reconcile covers the restart of all watches
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + time.Duration(rand.Int64N(int64(pause)))):
		}
		pause = min(2*pause, longestPause)
	}
}

// once watches from a resource version, for as long as it may, and returns the one to continue from, or "" if that is not known. It reports whether
// the watch lasted.
func (w watched) once(
	ctx context.Context, objects metadata.Getter, version string, until time.Time, s *sights, tried func(),
) (next string, lasted bool) {
	options := metav1.ListOptions{LabelSelector: w.label, FieldSelector: w.field, Limit: 1}
	if version == "" {
		list, err := objects.List(ctx, options)
		if err != nil || !outer.IsVersion(list.GetResourceVersion()) {
			tried()
			return "", false
		}
		version = list.GetResourceVersion()
		s.lose()
		tried()
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	options.Limit, options.ResourceVersion, options.AllowWatchBookmarks = 0, version, true
	events, err := objects.Watch(ctx, options)
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return "", false
		}
		return version, false
	}
	defer events.Stop()
	began := time.Now()
	for event := range events.ResultChan() {
		o, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || event.Type == watch.Error {
			return "", time.Since(began) > steady
		}
		version = o.ResourceVersion
		if !outer.IsVersion(version) {
			return "", time.Since(began) > steady
		}
		id := remote.ID{GroupKind: w.kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
		switch event.Type {
		case watch.Bookmark:
		case watch.Deleted: // or it no longer has the label
			s.tell(id, nil)
		default:
			s.tell(id, o)
		}
	}
	return version, time.Since(began) > steady
}
