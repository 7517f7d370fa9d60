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

// explained gives the errors of etcd the status that clients need: 413 where it does not take an object for its size, which a request that the
// server reads may exceed, 507 where it has no room for anything, and 503 or 504 where it has not answered.
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

// GetCurrentResourceVersion implements storage.Interface. Lists of a cache ask for it.
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

// explain translates what etcd says of a size: its server of one above its --max-request-bytes, its client of one above what it
// sends at all; of a database that has reached its quota, which lets only deletions through until its alarm is ended; and of an answer that
// is late, or does not come.
func explain(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return storagefull.NewError("etcd is full (" + err.Error() + "): delete what is not needed, then compact and defragment it, and end the " +
			"alarm NOSPACE, or raise its --quota-backend-bytes; an embedded etcd does that by itself, as far as it can")
	}
	client := status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
	if client || errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object cannot be stored, remove what it does not need: %v", err))
	}
	return unanswered(err)
}

// explainWrite is explain for a write. One that etcd may have done, and has not answered, names no time to try again: clients would repeat it
// by themselves, and create a second object.
func explainWrite(err error) error {
	err = explain(err)
	var told *apierrors.StatusError
	if errors.As(err, &told) && told.ErrStatus.Code == http.StatusGatewayTimeout && told.ErrStatus.Details != nil {
		told.ErrStatus.Details.RetryAfterSeconds = 0
	}
	return err
}

// retryAfter is after how many seconds a client is asked to try again.
const retryAfter = 1

// unanswered makes a 503 or 504 of an error that etcd has not answered, and logs it: it may have the addresses of etcd.
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
		answer = apierrors.NewTimeoutError("etcd took too long to answer: read what is stored before a write is tried again", retryAfter)
	case code == codes.Unavailable || errors.Is(err, rpctypes.ErrTooManyRequests):
		answer = apierrors.NewServiceUnavailable("etcd does not answer at the moment: try again later")
		answer.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	default:
		return err
	}
	klog.ErrorS(err, "Etcd has not answered")
	return answer
}
