// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/tools/cache"

	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// NamespaceCounter counts the objects in namespaces.
type NamespaceCounter interface {
	// Store returns the store for the objects of a resource.
	Store(schema.GroupResource) cache.ReflectorStore
	// Counts reports whether all objects of a resource are counted.
	Counts(schema.GroupResource) bool
}

// setRegistries passes the registries to admission, and counts objects for it while the server runs.
func (c CompletedConfig) setRegistries(generic *genericapiserver.GenericAPIServer, s stores) error {
	if c.config.SetRegistries == nil {
		return nil
	}
	var counter NamespaceCounter
	registries := s.registries()
	registries.FollowNamespaced = func(n NamespaceCounter) { counter = n }
	c.config.SetRegistries(registries)
	if counter == nil {
		return nil
	}
	err := generic.AddPostStartHook("count-namespaces", func(hook genericapiserver.PostStartHookContext) error {
		s.countNamespaces(hook, counter)
		return nil
	})
	if err != nil {
		return err
	}
	return generic.AddReadyzChecks(healthz.NamedCheck("namespaces", func(*http.Request) error { return s.counted(counter) }))
}

// countNamespaces feeds a counter with the objects of all namespaced kinds, and their changes, from the caches of the server, until the context ends.
func (s stores) countNamespaces(ctx context.Context, counter NamespaceCounter) {
	for resource, stored := range s.stored {
		if stored.NamespaceScoped() {
			options := cache.ReflectorOptions{Name: "namespaces of " + resource.String()}
			go cache.NewReflectorWithOptions(ofCache(stored), nil, counter.Store(resource), options).RunWithContext(ctx)
		}
	}
}

// counted returns an error until the counter has counted all objects.
func (s stores) counted(counter NamespaceCounter) error {
	for resource, stored := range s.stored {
		if stored.NamespaceScoped() && !counter.Counts(resource) {
			return fmt.Errorf("the %s of all namespaces are being counted", resource)
		}
	}
	return nil
}

// withoutInitialEvents is a client that lists before it watches.
type withoutInitialEvents struct{}

// IsWatchListSemanticsUnSupported is called by reflectors.
func (withoutInitialEvents) IsWatchListSemanticsUnSupported() bool { return true }

// ofCache lists and watches a resource in all namespaces, from the cache.
func ofCache(stored *hubgeneric.Resource) cache.ListerWatcher {
	options := func(o metav1.ListOptions) *internalversion.ListOptions {
		return &internalversion.ListOptions{ResourceVersion: o.ResourceVersion, AllowWatchBookmarks: o.AllowWatchBookmarks}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return stored.Store.List(ctx, options(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := stored.Store.Watch(ctx, options(o))
			if err != nil {
				return nil, err
			}
			return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
				if shared, ok := e.Object.(runtime.CacheableObject); ok {
					e.Object = shared.GetObject()
				}
				return e, true
			}), nil
		},
	}, withoutInitialEvents{})
}
