// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/storagefull"
)

// explained gives the errors of etcd the status that clients need: 413 if an object is too large for etcd, which is possible for requests that the
// server accepts, 507 if the database is full, and 503 or 504 if etcd did not respond.
type explained struct{ storage.Interface }

// Get implements storage.Interface.
func (s explained) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return explain(s.Interface.Get(ctx, key, opts, out))
}

// GetList implements storage.Interface.
func (s explained) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return explain(s.Interface.GetList(ctx, key, opts, list))
}

// Watch implements storage.Interface.
func (s explained) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := s.Interface.Watch(ctx, key, opts)
	return w, explain(err)
}

// GetCurrentResourceVersion implements storage.Interface. Lists of a cache call it.
func (s explained) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	version, err := s.Interface.GetCurrentResourceVersion(ctx)
	return version, explain(err)
}

// Create implements storage.Interface.
func (s explained) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return explainWrite(s.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate implements storage.Interface.
func (s explained) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object) error {
	return explainWrite(s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject))
}

// Delete implements storage.Interface.
func (s explained) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cachedExistingObject runtime.Object, opts storage.DeleteOptions) error {
	return explainWrite(s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cachedExistingObject, opts))
}

// explain translates etcd's errors about sizes: the server's for an object above its --max-request-bytes, and the client's for one above what it
// sends at all; about a database that has reached its quota, which allows only deletions until its alarm is disarmed; and about a response that is
// late, or missing.
func explain(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return storagefull.NewError("etcd is full (" + err.Error() + "): delete what is not needed, then compact and defragment it, and end the " +
			"alarm NOSPACE, or raise its --quota-backend-bytes; an embedded etcd does that by itself, as far as it can")
	}
	client := status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
	if client || errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object cannot be stored, remove fields that it does not need: %v", err))
	}
	return unanswered(err)
}

// explainWrite is explain for a write. If etcd may have executed the write without a response, the error has no Retry-After: clients would repeat the
// write automatically, and create a second object.
func explainWrite(err error) error {
	err = explain(err)
	var told *apierrors.StatusError
	if errors.As(err, &told) && told.ErrStatus.Code == http.StatusGatewayTimeout && told.ErrStatus.Details != nil {
		told.ErrStatus.Details.RetryAfterSeconds = 0
	}
	return err
}

// retryAfter is the number of seconds after which a client may retry.
const retryAfter = 1

// unanswered returns a 503 or 504 for an error without a response of etcd, and logs the error, which may contain the addresses of etcd.
func unanswered(err error) error {
	var known apierrors.APIStatus
	if err == nil || errors.As(err, &known) {
		return err
	}
	code := status.Code(err)
	var told rpctypes.EtcdError
	if errors.As(err, &told) {
		code = told.Code()
	}
	late := errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || errors.Is(err, rpctypes.ErrTimeout) ||
		errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) || errors.Is(err, rpctypes.ErrTimeoutDueToConnectionLost) ||
		errors.Is(err, rpctypes.ErrTimeoutWaitAppliedIndex)
	var answer *apierrors.StatusError
	switch {
	case late:
		answer = apierrors.NewTimeoutError("etcd took too long to respond: read the stored object before you retry a write", retryAfter)
	case code == codes.Unavailable || errors.Is(err, rpctypes.ErrTooManyRequests):
		answer = apierrors.NewServiceUnavailable("etcd does not respond at the moment: try again later")
		answer.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	default:
		return err
	}
	klog.ErrorS(err, "Etcd did not respond")
	return answer
}
