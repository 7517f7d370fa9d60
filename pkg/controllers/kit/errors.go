// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// IsGone says that there is no object of the name. It is false while the API is not served: then it is not known.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// IgnoreGone leaves the other errors.
func IgnoreGone(err error) error {
	if IsGone(err) {
		return nil
	}
	return err
}

// IsOutdated says that an object has changed or gone since it was read. That comes as an event, and with it the next try.
func IsOutdated(err error) bool {
	return apierrors.IsConflict(err) || IsGone(err)
}

// IgnoreOutdated leaves the other errors.
func IgnoreOutdated(err error) error {
	if IsOutdated(err) {
		return nil
	}
	return err
}

// soon is after how long something is looked at again that has changed meanwhile.
const soon = time.Second

// ConflictsAreSoonOver is a reconciler that takes a conflict for what it is where several programs write: the object is looked at again soon,
// nothing is logged, and the time after failures grows no longer. It is for reconcilers that write objects of whose changes they are not told;
// else IgnoreOutdated is enough. An error that is more than a conflict stays.
func ConflictsAreSoonOver(r reconcile.Reconciler) reconcile.Reconciler {
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

// Retold is an error in other words, for one whose own words are not to be shown. It is a conflict if that is one; nothing else is known of
// it.
func Retold(err error, text string) error {
	if !apierrors.IsConflict(err) {
		return errors.New(text)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: text}}
}

// Problem is an error for a condition of the object, for users and admins to solve. When it is solved, that comes as an
// event.
type Problem struct {
	// Reason is that of the condition.
	Reason, Message string
	// Again is not nil if its end is no event: it is to be tried again.
	Again error
}

func (p *Problem) Error() string { return p.Message }

// Problemf makes a Problem of which one hears when it ends.
func Problemf(reason, format string, args ...any) error {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// maxMessage is less than the 1,024 bytes that an event takes, since what is shown in a condition is told by an event, too.
const maxMessage = 1000

// Message is a text as long as conditions and events may be.
func Message(text string) string { return conditionevents.Cut(text, maxMessage) }
