// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Watcher is a Provider that sees by itself what becomes of its clusters.
type Watcher interface {
	// Watch runs until the context ends, and only while the provider is the one that acts. It calls changed for a Cluster that
	// Ensure has to look at. exist returns the UIDs of all Clusters of the hub: whatever the provider has of others is left over.
	Watch(ctx context.Context, changed func(types.NamespacedName), exist func(context.Context) (sets.Set[types.UID], error))
}

// watch is what a provider sees by itself, as a source of what is reconciled.
func watch(provider Provider, live client.Reader) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if watcher, ok := provider.(Watcher); ok {
			go watcher.Watch(ctx, func(name types.NamespacedName) {
				queue.Add(reconcile.Request{NamespacedName: name})
			}, func(ctx context.Context) (sets.Set[types.UID], error) { return existing(ctx, live) })
		}
		return nil
	})
}

// existing are the UIDs of all Clusters.
func existing(ctx context.Context, live client.Reader) (sets.Set[types.UID], error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ClusterList"))
	if err := live.List(ctx, list); err != nil {
		return nil, err
	}
	uids := sets.New[types.UID]()
	for _, cluster := range list.Items {
		uids.Insert(cluster.UID)
	}
	return uids, nil
}
