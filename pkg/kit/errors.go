// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// CompareVersions returns whether resource version a is older than b (negative), the same (0) or newer (positive). Versions that cannot be compared
// count as the same.
func CompareVersions(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}

// IsGone reports whether no object of the name exists. It is false while the API is not served: then that is not known.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// IgnoreGone returns nil if IsGone is true, and the error otherwise.
func IgnoreGone(err error) error {
	if IsGone(err) {
		return nil
	}
	return err
}

// IsStale reports whether an object has changed or is gone since it was read. That arrives as an event, which causes the next try.
func IsStale(err error) bool {
	return apierrors.IsConflict(err) || IsGone(err)
}

// IgnoreStale returns nil if IsStale is true, and the error otherwise.
func IgnoreStale(err error) error {
	if IsStale(err) {
		return nil
	}
	return err
}

// soon is the delay of the retry after a conflict.
const soon = time.Second

// RequeueConflicts returns a reconciler that retries soon after a conflict, without a log message and an increasing delay: conflicts are normal
// if several programs write. It is for reconcilers that write objects without watching them; otherwise IgnoreStale is enough. An error that is
// more than a conflict is returned.
func RequeueConflicts(r reconcile.Reconciler) reconcile.Reconciler {
	return conflictsAreSoonOver{r}
}

// conflictsAreSoonOver is a type, and not a function, so that test/wiring finds the reconciler in it.
type conflictsAreSoonOver struct{ reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (c conflictsAreSoonOver) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, request)
	if onlyConflicts(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return result, err
}

func onlyConflicts(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return apierrors.IsConflict(err)
	}
	for _, err := range joined.Unwrap() {
		if !onlyConflicts(err) {
			return false
		}
	}
	return true
}

// WithMessage returns an error with a different text, for an error whose text must not be shown. It is a conflict if that is one; it has nothing else of
// it.
func WithMessage(err error, text string) error {
	if !apierrors.IsConflict(err) {
		return errors.New(text)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: text}}
}

// maxMessage is less than the limit of 1,024 bytes of an event, since messages of conditions are also recorded as events.
const maxMessage = 1000

// Message truncates a text to the length that conditions and events allow.
func Message(text string) string { return conditionevents.Cut(text, maxMessage) }
