// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storagefull is the error for writes that etcd has no room for.
package storagefull

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason is the reason of a Status with the code 507. Kubernetes has none for it.
const Reason metav1.StatusReason = "InsufficientStorage"

// NewError is a Status with the code 507. why says what is full, and what ends it. Clients do not try again by themselves:
// with every attempt of every client, an etcd that is full would have more to do.
func NewError(why string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: Reason,
		Message: fmt.Sprintf("%s. Nothing was written; reads and deletions still work", why),
	}}
}
