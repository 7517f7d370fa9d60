// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Follow updates a store with the rules of one kind on the front, until the context ends. The front is the client that the kind's client comes from.
func Follow[List runtime.Object](ctx context.Context, front any, client interface {
	List(context.Context, metav1.ListOptions) (List, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}, kind runtime.Object, store cache.ReflectorStore) {
	listWatch := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: client.Watch,
	}, front)
	go cache.NewReflectorWithOptions(listWatch, kind, store, cache.ReflectorOptions{}).RunWithContext(ctx)
}
