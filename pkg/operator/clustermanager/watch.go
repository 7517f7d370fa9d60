// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/clusterhub/clusterhub/pkg/operator/outer"
)

const (
	// firstPause and lastPause are the first and the longest pause between watches that fail.
	firstPause, lastPause = time.Second, time.Minute
)

// follow watches objects until the context ends. It calls changed for each object that exists at its start, is created, changed or deleted, and lost
// when it may have missed changes. That is so whenever it starts without a resource version: deletions before that are not reported. It stores
// nothing of the objects, so that a cluster that is not trusted cannot fill the memory: objects are read when the ClusterManager is reconciled. At
// rest there is one watch and no other request.
func follow(ctx context.Context, resource metadata.ResourceInterface, options metav1.ListOptions, changed func(metav1.Object), lost func()) {
	options.AllowWatchBookmarks = true
	options.ResourceVersion = "" // then all objects are sent at first
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		if w, err := resource.Watch(ctx, options); err == nil {
			if options.ResourceVersion == "" {
				lost() // not earlier: from here on no change is missed
			}
			options.ResourceVersion = read(w, options.ResourceVersion, changed)
			w.Stop()
		} else {
			options.ResourceVersion = ""
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.Jitter(pause, 0.5)):
		}
		pause = min(2*pause, lastPause)
	}
}

// read reads a watch to its end, and returns the resource version to continue from.
func read(w watch.Interface, version string, changed func(metav1.Object)) string {
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return "" // such as 410: changes since then are unknown
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return ""
		}
		version = object.GetResourceVersion()
		if !outer.IsVersion(version) {
			return ""
		}
		if event.Type != watch.Bookmark {
			changed(object)
		}
	}
	return version
}
