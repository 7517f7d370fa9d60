// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/storagefull"
)

// sized answers 413 where etcd does not take an object for its size, which a request that the server reads may exceed, and 507
// where etcd has no room for anything.
type sized struct{ storage.Interface }

// Create implements storage.Interface.
func (s sized) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return explain(s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate implements storage.Interface.
func (s sized) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	return explain(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject))
}

// Delete implements storage.Interface.
func (s sized) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	return explain(s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cachedExistingObject, opts))
}

// explain translates what etcd says of a size: its server of one above its --max-request-bytes, its client of one above what it
// sends at all; and of a database that has reached its quota, which lets only deletions through until its alarm is ended.
func explain(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return storagefull.NewError("etcd is full (" + err.Error() + "): delete what is not needed, then compact and defragment it, and end the " +
			"alarm NOSPACE, or raise its --quota-backend-bytes; an embedded etcd does that by itself, as far as it can")
	}
	client := status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
	if !client && !errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return err
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object cannot be stored, remove what it does not need: %v", err))
}
