// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
)

// watch returns a source of the events that a provider observes itself.
func watch(provider clusterprovider.Provider, live client.Reader) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if watcher, ok := provider.(clusterprovider.Watcher); ok {
			go watcher.Watch(ctx, func(name types.NamespacedName) {
				queue.Add(reconcile.Request{NamespacedName: name})
			}, func(ctx context.Context) (sets.Set[types.UID], error) { return existing(ctx, live) })
		}
		return nil
	})
}

// existing returns the UIDs of all Clusters.
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
