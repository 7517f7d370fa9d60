// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// ReportUnansweredPlugins wraps admission plugins so that a request fails with 503 if the front did not respond to one of them. For example,
// NamespaceLifecycle gets a namespace from the front that is not in the cache, and returns a 500 with the error, which contains the front's address.
// Nothing was written then, so clients may retry.
func ReportUnansweredPlugins(plugins admission.Interface, front *rest.Config) (admission.Interface, error) {
	at, _, err := rest.DefaultServerUrlFor(front)
	if err != nil {
		return nil, err
	}
	return unanswered{plugins, at.Host}, nil
}

type unanswered struct {
	admission.Interface
	// front is the address that identifies the errors of its clients. The plugins leave no other trace of them.
	front string
}

var (
	_ admission.MutationInterface   = unanswered{}
	_ admission.ValidationInterface = unanswered{}
)

// Admit implements admission.MutationInterface.
func (u unanswered) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugins, ok := u.Interface.(admission.MutationInterface); ok {
		return u.report(ctx, plugins.Admit(ctx, a, o))
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (u unanswered) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plugins, ok := u.Interface.(admission.ValidationInterface); ok {
		return u.report(ctx, plugins.Validate(ctx, a, o))
	}
	return nil
}

// report does not change a rejection by a plugin: it may contain text of users.
func (u unanswered) report(ctx context.Context, err error) error {
	if err == nil || !strings.Contains(err.Error(), u.front) {
		return err
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonInternalError && reason != metav1.StatusReasonUnknown {
		return err
	}
	klog.FromContext(ctx).Error(err, "The front did not respond to an admission plugin")
	return note(ctx, "an admission plugin", err)
}
