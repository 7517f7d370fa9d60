// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Contested reports that another work had the object first, and desires a different state.
type Contested struct {
	Target Target
	// Rival is the name of that work.
	Rival string
}

func (e *Contested) Error() string {
	return fmt.Sprintf("%s also belongs to ManifestWork %s, which had it first and has a different manifest: change one of the two works",
		e.Target, e.Rival)
}

// IsGone reports whether the object does not exist. It is false if the resource is not served: then this is not known.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// LacksNamespace reports whether an object could not be created because its namespace does not exist, or is being deleted.
func LacksNamespace(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return IsGone(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == Namespaces.Resource
}

// IsNotServed reports whether the resource is not served, or not in that version.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// isOfFields reports whether an error is a conflict with another field manager, which a retry does not resolve.
func isOfFields(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// isNotApplicable reports whether a server rejects an apply request for an object that it may accept in a create or update request: server-side apply
// needs a schema that has all fields, and lists without duplicate keys, and some aggregated API servers do not have it.
func isNotApplicable(err error) bool {
	return err != nil && (apierrors.IsUnsupportedMediaType(err) || apierrors.IsMethodNotSupported(err) ||
		strings.Contains(err.Error(), "failed to create typed "))
}
