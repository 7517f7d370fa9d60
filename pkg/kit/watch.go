// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests returns requests for the objects of a list that is read from a cache. That fails only until the cache is synced: each of them is
// reconciled after that.
func Requests(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) (requests []reconcile.Request) {
	err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(obj runtime.Object) error {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj.(client.Object))})
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the objects that a change affects", "options", options)
	}
	return requests
}

// ByLabel maps an object to the cluster-scoped object that a label of it names.
func ByLabel(label string) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		name := obj.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
}

// Existence passes events when an object is created and when it is deleted.
func Existence() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
