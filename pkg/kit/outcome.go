// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"time"
)

// Outcome is an error that ends a reconciliation as intended: the object must wait, or a user or an admin must act. A condition of the object
// reports it. The controller retries it after RequeueAfter, or after an event, and not with the backoff of its queue.
type Outcome struct {
	// Reason and Message are for the condition. An outcome without a reason is not reported.
	Reason, Message string
	// RequeueAfter is the delay of the next attempt. If it is 0, an event causes the next attempt.
	RequeueAfter time.Duration
	// Repeated reports that there was no attempt this time: the outcome is that of an earlier one, whose condition may not have been written.
	Repeated bool
	// Err is an error that is retried with the backoff of the queue besides, since no event shows when it is over.
	Err error
}

func (o *Outcome) Error() string {
	if o.Message == "" {
		return fmt.Sprintf("to be checked again in %s", o.RequeueAfter)
	}
	return o.Message
}

// Outcomef returns an Outcome after which an event causes the next attempt.
func Outcomef(reason, format string, args ...any) error {
	return &Outcome{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Requeue returns an Outcome that is not reported.
func Requeue(after time.Duration) error { return &Outcome{RequeueAfter: after} }
