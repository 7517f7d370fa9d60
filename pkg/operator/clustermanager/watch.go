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
	// firstPause and lastPause are between watches that fail.
	firstPause, lastPause = time.Second, time.Minute
)

// follow tells of changes of objects until the context ends: changed of each that is there at its beginning, is made, changed or deleted,
// and lost that there may have been changes of which it does not know. That is so whenever it begins without a version: what was deleted
// before is not told then. It keeps nothing of what it is told, so that a cluster which is not trusted cannot fill the memory: what has
// become of objects is looked at when the ClusterManager is reconciled. At rest there is a watch and no other request.
func follow(ctx context.Context, resource metadata.ResourceInterface, options metav1.ListOptions, changed func(metav1.Object), lost func()) {
	options.AllowWatchBookmarks = true
	options.ResourceVersion = "" // then all objects are told at first
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		if w, err := resource.Watch(ctx, options); err == nil {
			if options.ResourceVersion == "" {
				lost() // not before: from here on nothing is missed
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

// read reads a watch to its end, and returns from where the next one goes on.
func read(w watch.Interface, version string, changed func(metav1.Object)) string {
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return "" // such as 410: what happened meanwhile is not known
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return ""
		}
		if version = object.GetResourceVersion(); !outer.IsVersion(version) {
			return ""
		}
		if event.Type != watch.Bookmark {
			changed(object)
		}
	}
	return version
}
