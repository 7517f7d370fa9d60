// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

const (
	// firstPause is how long it takes until a watch that has failed is tried again, and longestPause after many failures.
	firstPause, longestPause = time.Second, 2 * time.Minute
	// steady is how long a watch has to last to be no failure.
	steady = 10 * time.Second
)

// watched are objects of one resource of a cluster.
type watched struct {
	resource     schema.GroupVersionResource
	label, field string
}

// follow tells of changes of objects until the context ends: of each that is made, changed or deleted, and, with nil, that there may have
// been changes of which it does not know. Nothing is kept: a cluster that has more objects than it says costs no memory. Nothing is asked
// for again while a watch goes on, nor when it ends and the server still knows where.
func (w watched) follow(ctx context.Context, c metadata.Interface, changed func(*metav1.PartialObjectMetadata)) {
	objects, version, pause := c.Resource(w.resource), "", firstPause
	for ctx.Err() == nil {
		began := time.Now()
		version = w.once(ctx, objects, version, changed)
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
func (w watched) once(ctx context.Context, objects metadata.Getter, version string, changed func(*metav1.PartialObjectMetadata)) string {
	options := metav1.ListOptions{LabelSelector: w.label, FieldSelector: w.field, Limit: 1}
	if version == "" {
		list, err := objects.List(ctx, options)
		if err != nil {
			return ""
		}
		version = list.GetResourceVersion()
		changed(nil)
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
		if event.Type != watch.Bookmark {
			changed(o)
		}
	}
	return version
}
