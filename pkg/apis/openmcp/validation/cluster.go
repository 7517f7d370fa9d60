// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

const minVersion = 5

var tenancies = []openmcp.Tenancy{openmcp.TENANCY_EXCLUSIVE, openmcp.TENANCY_SHARED}

// ValidateClusterProfile checks a new profile.
func ValidateClusterProfile(p *openmcp.ClusterProfile) field.ErrorList {
	errs := append(validateMeta(&p.ObjectMeta, false), validateClusterProfileSpec(&p.Spec, field.NewPath("spec"))...)
	return append(errs, boundClusterProfileSpec(&p.Spec, &openmcp.ClusterProfileSpec{}, field.NewPath("spec"))...)
}

// ValidateClusterProfileUpdate checks a change of a profile.
func ValidateClusterProfileUpdate(p, old *openmcp.ClusterProfile) field.ErrorList {
	errs := append(validateMetaUpdate(&p.ObjectMeta, &old.ObjectMeta), validateClusterProfileSpec(&p.Spec, field.NewPath("spec"))...)
	return append(errs, boundClusterProfileSpec(&p.Spec, &old.Spec, field.NewPath("spec"))...)
}

func validateClusterProfileSpec(spec *openmcp.ClusterProfileSpec, at *field.Path) field.ErrorList {
	errs := validateLabelValue(spec.ProviderRef.Name, "cluster provider", at.Child("providerRef", "name"))
	errs = append(errs, validateLabelValue(spec.ProviderConfigRef.Name, "provider's configuration", at.Child("providerConfigRef", "name"))...)
	versions := at.Child("supportedVersions")
	if spec.SupportedVersions == nil {
		errs = append(errs, field.Required(versions, "must list the versions of Kubernetes that are offered; [] offers any version"))
	}
	for i, v := range spec.SupportedVersions {
		if utf8.RuneCountInString(v.Version) < minVersion {
			errs = append(errs, field.Invalid(versions.Index(i).Child("version"), v.Version,
				fmt.Sprintf("must be a version such as 1.33.3, at least %d characters", minVersion)))
		}
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
	errs := append(validateMeta(&c.ObjectMeta, true), validateClusterSpec(&c.Spec, field.NewPath("spec"))...)
	return append(errs, boundClusterSpec(&c.Spec, &openmcp.ClusterSpec{}, field.NewPath("spec"))...)
}

// ValidateClusterUpdate checks a change of a cluster.
func ValidateClusterUpdate(c, old *openmcp.Cluster) field.ErrorList {
	errs := validateMetaUpdate(&c.ObjectMeta, &old.ObjectMeta)
	at := field.NewPath("spec")
	if c.Spec.Profile != old.Spec.Profile {
		errs = append(errs, field.Invalid(at.Child("profile"), c.Spec.Profile, "profile is immutable"))
	}
	errs = append(errs, boundClusterSpec(&c.Spec, &old.Spec, at)...)
	return append(errs, validateClusterSpec(&c.Spec, at)...)
}

func validateClusterSpec(spec *openmcp.ClusterSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Profile == "" {
		errs = append(errs, field.Required(at.Child("profile"), "must name a ClusterProfile"))
	}
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
	at, s := field.NewPath("status"), &c.Status
	errs := validateMetaUpdate(&c.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, boundClusterStatus(s, &old.Status, at)...)
	errs = append(errs, validateStatus(&s.Status, at)...)
	for i, e := range s.Endpoints {
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("endpoints").Index(i).Child("name"), "must name the endpoint, such as apiserver-external"))
		}
	}
	if s.ProviderStatus != nil && !bytes.HasPrefix(bytes.TrimSpace(s.ProviderStatus.Raw), []byte("{")) {
		errs = append(errs, field.Invalid(at.Child("providerStatus"), field.OmitValueType{}, "must be an object"))
	}
	return errs
}

// ValidateClusterRequest checks a new request.
func ValidateClusterRequest(r *openmcp.ClusterRequest) field.ErrorList {
	errs := validateMeta(&r.ObjectMeta, true)
	errs = append(errs, bounds.Length(field.NewPath("spec", "purpose"), r.Spec.Purpose, 0, maxName)...)
	if r.Spec.Purpose == "" {
		errs = append(errs, field.Required(field.NewPath("spec", "purpose"), "must name the purpose of the cluster, such as workload"))
	}
	return errs
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
	errs = append(errs, boundStatus(&r.Status.Status, &old.Status.Status, at)...)
	errs = append(errs, validateStatus(&r.Status.Status, at)...)
	errs = append(errs, validateReference(r.Status.Cluster, "Cluster", at.Child("cluster"))...)
	if apiequality.Semantic.DeepEqual(r.Status, openmcp.ClusterRequestStatus{}) {
		return errs // A status can be lost as a whole. The scheduler finds the cluster again by its finalizer.
	}
	return append(errs, validateFixed(r.Status.Cluster, old.Status.Cluster, "cluster", at)...)
}
