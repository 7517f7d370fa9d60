// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectPointer is a pointer to a type of the API.
type objectPointer[O any] interface {
	*O
	client.Object
}

// Patch changes an object that is still as it was read; otherwise the error is a conflict. The lock preserves concurrent writes of others: a merge
// patch replaces lists as a whole. If there is nothing to change, nothing is sent. The object is set to the response; after an error it is
// unchanged.
func Patch[O any, T objectPointer[O]](ctx context.Context, c client.Writer, obj T, change func(T)) (changed bool, err error) {
	return patch(obj, change, func(now T, patch client.Patch) error { return c.Patch(ctx, now, patch) })
}

// PatchStatus does the same to the status.
func PatchStatus[O any, T objectPointer[O]](ctx context.Context, c client.StatusClient, obj T, change func(T)) (changed bool, err error) {
	return patch(obj, change, func(now T, patch client.Patch) error { return c.Status().Patch(ctx, now, patch) })
}

func patch[O any, T objectPointer[O]](obj T, change func(T), send func(T, client.Patch) error) (changed bool, err error) {
	now := obj.DeepCopyObject().(T)
	change(now)
	if equality.Semantic.DeepEqual(obj, now) {
		return false, nil
	}
	if err := send(now, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, err
	}
	*obj = *now
	return true, nil
}

// AsRead returns preconditions by which a deletion fails with a conflict if the object has changed since it was read.
func AsRead(obj client.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
