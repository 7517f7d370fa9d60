// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefusedError reports that a service other than the hub, such as AWS, rejects the agent's identity. The hub creates the identity when it accepts the
// cluster, and deletes it when it denies the cluster. So the error has the same meaning as Forbidden from the hub.
type RefusedError struct{ Message string }

var _ apierrors.APIStatus = &RefusedError{}

func (e *RefusedError) Error() string { return e.Message }

// Status implements errors.APIStatus.
func (e *RefusedError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.Message}
}
