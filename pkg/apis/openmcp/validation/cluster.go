// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

var tenancies = []openmcp.Tenancy{openmcp.TENANCY_EXCLUSIVE, openmcp.TENANCY_SHARED}

// ValidateClusterProfile checks a new profile.
func ValidateClusterProfile(p *openmcp.ClusterProfile) field.ErrorList {
	return append(validateMeta(&p.ObjectMeta, false), validateClusterProfileSpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidateClusterProfileUpdate checks a change of a profile.
func ValidateClusterProfileUpdate(p, old *openmcp.ClusterProfile) field.ErrorList {
	return append(validateMetaUpdate(&p.ObjectMeta, &old.ObjectMeta), validateClusterProfileSpec(&p.Spec, field.NewPath("spec"))...)
}

func validateClusterProfileSpec(spec *openmcp.ClusterProfileSpec, at *field.Path) field.ErrorList {
	errs := validateLabelValue(spec.ProviderRef.Name, at.Child("providerRef", "name"))
	errs = append(errs, validateLabelValue(spec.ProviderConfigRef.Name, at.Child("providerConfigRef", "name"))...)
	if spec.SupportedVersions == nil {
		errs = append(errs, field.Required(at.Child("supportedVersions"), "must list the versions of Kubernetes that are offered; [] offers any version"))
	}
	return errs
}

// ClusterProfileWarnings tells what will not work about a profile.
func ClusterProfileWarnings(p *openmcp.ClusterProfile) []string {
	if len(validation.IsValidLabelValue(p.Name)) == 0 {
		return nil
	}
	return []string{"metadata.name: is not a valid label value, so AccessRequests for clusters of this profile cannot be granted"}
}

// ValidateCluster checks a new cluster.
func ValidateCluster(c *openmcp.Cluster) field.ErrorList {
	return append(validateMeta(&c.ObjectMeta, true), validateClusterSpec(&c.Spec, field.NewPath("spec"))...)
}

// ValidateClusterUpdate checks a change of a cluster.
func ValidateClusterUpdate(c, old *openmcp.Cluster) field.ErrorList {
	errs := validateMetaUpdate(&c.ObjectMeta, &old.ObjectMeta)
	at := field.NewPath("spec")
	if c.Spec.Profile != old.Spec.Profile {
		errs = append(errs, field.Invalid(at.Child("profile"), c.Spec.Profile, "profile is immutable"))
	}
	return append(errs, validateClusterSpec(&c.Spec, at)...)
}

func validateClusterSpec(spec *openmcp.ClusterSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Purposes != nil && len(spec.Purposes) == 0 {
		errs = append(errs, field.Invalid(at.Child("purposes"), field.OmitValueType{}, "should have at least 1 items"))
	}
	switch spec.Tenancy {
	case openmcp.TENANCY_EXCLUSIVE, openmcp.TENANCY_SHARED:
	case "":
		errs = append(errs, field.Required(at.Child("tenancy"), "must be Exclusive or Shared"))
	default:
		errs = append(errs, field.NotSupported(at.Child("tenancy"), spec.Tenancy, tenancies))
	}
	return errs
}

// ValidateClusterStatusUpdate checks a change of a cluster's status.
func ValidateClusterStatusUpdate(c, old *openmcp.Cluster) field.ErrorList {
	at := field.NewPath("status")
	errs := validateMetaUpdate(&c.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateConditions(c.Status.Conditions, at.Child("conditions"))...)
	return append(errs, validateProviderStatus(c.Status.ProviderStatus, old.Status.ProviderStatus, at.Child("providerStatus"))...)
}

func validateProviderStatus(status, old *runtime.RawExtension, at *field.Path) field.ErrorList {
	if status == nil {
		return nil
	}
	before := 0
	if old != nil {
		before = len(old.Raw)
	}
	errs := bounds.Length(at, string(status.Raw), before, maxProviderStatus)
	if !bytes.HasPrefix(bytes.TrimSpace(status.Raw), []byte("{")) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "must be an object"))
	}
	return errs
}

// ValidateClusterRequest checks a new request.
func ValidateClusterRequest(r *openmcp.ClusterRequest) field.ErrorList {
	return validateMeta(&r.ObjectMeta, true)
}

// ValidateClusterRequestUpdate checks a change of a request, whose spec cannot change.
func ValidateClusterRequestUpdate(r, old *openmcp.ClusterRequest) field.ErrorList {
	errs := validateMetaUpdate(&r.ObjectMeta, &old.ObjectMeta)
	if !apiequality.Semantic.DeepEqual(r.Spec, old.Spec) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "spec is immutable"))
	}
	return errs
}

// ValidateClusterRequestStatusUpdate checks a change of a request's status.
func ValidateClusterRequestStatusUpdate(r, old *openmcp.ClusterRequest) field.ErrorList {
	at := field.NewPath("status")
	errs := validateMetaUpdate(&r.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateConditions(r.Status.Conditions, at.Child("conditions"))...)
	if apiequality.Semantic.DeepEqual(r.Status, openmcp.ClusterRequestStatus{}) {
		return errs // A status can be lost as a whole. The scheduler finds the cluster again by its finalizer.
	}
	return append(errs, validateFixed(r.Status.Cluster, old.Status.Cluster, "cluster", at)...)
}
