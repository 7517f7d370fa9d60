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
)

// sized answers 413 where etcd does not take an object for its size, which a request that the server reads may exceed.
type sized struct{ storage.Interface }

// Create implements storage.Interface.
func (s sized) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return tooLarge(s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate implements storage.Interface.
func (s sized) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	return tooLarge(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject))
}

// tooLarge translates what etcd says of a size: its server of one above its --max-request-bytes, its client of one above
// what it sends at all.
func tooLarge(err error) error {
	client := status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
	if !client && !errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return err
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object cannot be stored, remove what it does not need: %v", err))
}
