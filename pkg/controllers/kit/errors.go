// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
