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
	// firstPause is how long it takes until a watch that has failed is tried again, and longestPause after many failures.
	firstPause, longestPause = time.Second, 2 * time.Minute
	// steady is how long a watch has to last to be no failure.
	steady = 10 * time.Second
	// headStart is for how long watches are waited for before something is looked at.
	headStart = 5 * time.Second
	// anew is after how long watches begin anew, with a look, and at most after twice that: what a server did not tell, or tells no more,
	// such as one that was restored from a backup, is found then.
	anew = 4 * time.Hour
	// lookAnyway is how often something is looked at of which nothing tells that it has changed, such as while a watch does not begin.
	lookAnyway = 10 * time.Minute
)

// watched are objects of one kind of a cluster.
type watched struct {
	kind         kind
	label, field string
}

// listening are watches.
type listening <-chan struct{}

// audience is for whom watches of one cluster go on.
type audience struct {
	*sights
	// every is how often the watches begin anew: all at one time, so that one look follows, and those of each cluster at another.
	every time.Duration
	// missing is how often there is a look while a watch does not begin.
	missing *rate.Limiter
}

// listen follows all of them.
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

// wait waits until they have begun. What is looked at before that has to be looked at again. They may not begin: then it is not for long.
func (l listening) wait(ctx context.Context) {
	select {
	case <-l:
	case <-time.After(headStart):
	case <-ctx.Done():
	}
}

// follow tells of changes of objects until the context ends: of each that is made, changed or deleted, and that there may have
// been changes of which it does not know. Nothing is kept: a cluster that has more objects than it says costs no memory. Nothing is asked
// for again while a watch goes on, nor when it ends and the server still knows where, but that all begins anew after some hours. Where a
// watch does not begin for minutes, such as one that is refused, there is a look now and then. It says when it was tried to begin.
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
			continue // at once: those of the other watches are one look with it
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + time.Duration(rand.Int64N(int64(pause)))):
		}
		pause = min(2*pause, longestPause)
	}
}

// once watches from a version, for as long as it may, and returns the one from which to go on; "" if that is not known. It says whether
// the watch has lasted.
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
		if version = o.ResourceVersion; !outer.IsVersion(version) {
			return "", time.Since(began) > steady
		}
		id := remote.ID{GroupKind: w.kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
		switch event.Type {
		case watch.Bookmark:
		case watch.Deleted: // or it does not have the label any more
			s.tell(id, nil)
		default:
			s.tell(id, o)
		}
	}
	return version, time.Since(began) > steady
}
