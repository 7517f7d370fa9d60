// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefusedError is that whoever gives out identities, beside the hub, does not let the agent have its own. The hub makes the
// identity when it accepts the cluster and removes it when it does not any more: this is the hub's Forbidden, in another's words.
type RefusedError struct{ Message string }

var _ apierrors.APIStatus = &RefusedError{}

func (e *RefusedError) Error() string { return e.Message }

// Status implements errors.APIStatus.
func (e *RefusedError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.Message}
}
