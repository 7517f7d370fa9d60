// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/clusterhub/clusterhub/pkg/remote"
)

const (
	// firstPause is how long it takes until a watch that has failed is tried again, and longestPause after many failures.
	firstPause, longestPause = time.Second, 2 * time.Minute
	// steady is how long a watch has to last to be no failure.
	steady = 10 * time.Second
	// headStart is for how long watches are waited for before something is looked at.
	headStart = 5 * time.Second
)

// watched are objects of one kind of a cluster.
type watched struct {
	kind         kind
	label, field string
}

// listening are watches.
type listening <-chan struct{}

// listen follows all of them.
func listen(ctx context.Context, c metadata.Interface, s *sights, all []watched) listening {
	var first sync.WaitGroup
	for _, w := range all {
		first.Add(1)
		go w.follow(ctx, c, s, first.Done)
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
// for again while a watch goes on, nor when it ends and the server still knows where. It says when it was tried to begin.
func (w watched) follow(ctx context.Context, c metadata.Interface, s *sights, tried func()) {
	once := sync.OnceFunc(tried)
	defer once()
	objects, version, pause := c.Resource(w.kind.gvr()), "", firstPause
	for ctx.Err() == nil {
		began := time.Now()
		version = w.once(ctx, objects, version, s, once)
		if time.Since(began) > steady {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause + time.Duration(rand.Int64N(int64(pause)))):
		}
		pause = min(2*pause, longestPause)
	}
}

// once watches from a version, and returns the one from which to go on; "" if that is not known.
func (w watched) once(ctx context.Context, objects metadata.Getter, version string, s *sights, tried func()) string {
	options := metav1.ListOptions{LabelSelector: w.label, FieldSelector: w.field, Limit: 1}
	if version == "" {
		list, err := objects.List(ctx, options)
		if err != nil {
			tried()
			return ""
		}
		version = list.GetResourceVersion()
		s.lose()
		tried()
	}
	options.Limit, options.ResourceVersion, options.AllowWatchBookmarks = 0, version, true
	events, err := objects.Watch(ctx, options)
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return ""
		}
		return version
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		o, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || event.Type == watch.Error {
			return ""
		}
		version = o.ResourceVersion
		id := remote.ID{GroupKind: w.kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
		switch event.Type {
		case watch.Bookmark:
		case watch.Deleted: // or it does not have the label any more
			s.tell(id, nil)
		default:
			s.tell(id, o)
		}
	}
	return version
}
