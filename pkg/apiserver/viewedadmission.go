// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
)

// viewedAdmission admits a write of a cluster of clusterview as a write of the stored cluster. It wraps all plugins, so that none of them needs to
// handle the other name, and none decides twice.
type viewedAdmission struct{ admission.Interface }

var (
	_ admission.MutationInterface   = viewedAdmission{}
	_ admission.ValidationInterface = viewedAdmission{}
)

// Admit implements admission.MutationInterface.
func (v viewedAdmission) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if mutating, ok := v.Interface.(admission.MutationInterface); ok {
		return withStatus(mutating.Admit(ctx, asStored(a), o))
	}
	return nil
}

// withStatus returns a 500 for a failure of a plugin that has no status. Otherwise it could not be distinguished from an error in the request: both
// are returned by the function that computes the object of a patch.
func withStatus(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return apierrors.NewInternalError(err)
}

// Validate implements admission.ValidationInterface.
func (v viewedAdmission) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if validating, ok := v.Interface.(admission.ValidationInterface); ok {
		return validating.Validate(ctx, asStored(a), o)
	}
	return nil
}

func asStored(a admission.Attributes) admission.Attributes {
	if a.GetResource().GroupResource() == clusterview.Resource(managedcluster.Kind.Resource.Resource) {
		return storedAttributes{a}
	}
	return a
}

// storedAttributes are the attributes of a write of the stored cluster.
type storedAttributes struct{ admission.Attributes }

// GetResource implements admission.Attributes.
func (storedAttributes) GetResource() schema.GroupVersionResource {
	return managedcluster.Kind.Resource.WithVersion(clusterv1.SchemeGroupVersion.Version)
}

// GetKind implements admission.Attributes.
func (storedAttributes) GetKind() schema.GroupVersionKind {
	return clusterv1.SchemeGroupVersion.WithKind("ManagedCluster")
}
