// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// ValidateManifestWorkReplicaSetRevision checks a new revision. Its template is not looked at: admission compares it with that of the set,
// which was checked, maybe by an older server.
func ValidateManifestWorkReplicaSetRevision(r *work.ManifestWorkReplicaSetRevision) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&r.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, path)
	if value, want := r.Labels[work.ReplicaSetLabel], r.Namespace+"."+r.Spec.ReplicaSet; value != want {
		errs = append(errs, field.Invalid(path.Child("labels").Key(work.ReplicaSetLabel), value, fmt.Sprintf("must be %s", want)))
	}
	// Without its set, nothing would ever delete it.
	if owners := r.OwnerReferences; len(owners) != 1 || owners[0].UID != r.Spec.ReplicaSetUID || owners[0].Name != r.Spec.ReplicaSet ||
		owners[0].Kind != "ManifestWorkReplicaSet" {
		errs = append(errs, field.Forbidden(path.Child("ownerReferences"), "must be the ManifestWorkReplicaSet of the spec"))
	}
	return errs
}

// ValidateManifestWorkReplicaSetRevisionUpdate checks an update of a revision, whose spec is immutable.
func ValidateManifestWorkReplicaSetRevisionUpdate(r, old *work.ManifestWorkReplicaSetRevision) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&r.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, immutable(r.Spec, old.Spec)...)
}

func immutable(spec, old work.ManifestWorkReplicaSetRevisionSpec) field.ErrorList {
	errs := apivalidation.ValidateImmutableField(spec, old, field.NewPath("spec"))
	for _, err := range errs {
		err.BadValue = field.OmitValueType{} // a template may have secrets in it
	}
	return errs
}
