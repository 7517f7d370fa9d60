// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
)

const (
	// maxWeight is far above what admission allows to be stored (pkg/admission/objectsize), which runs only after validation. Kinds may override it.
	maxWeight = 512 << 10
	// maxMetadata is the maximum number of labels of an object, and of annotations, owner references, finalizers and managers. The generic server
	// validates all of them.
	maxMetadata = 512
)

// checkWeight rejects what is too large to be validated. A request has room for a million entries, each with several errors. Objects that were stored
// before the limits existed may stay as they are.
func checkWeight(updated, old runtime.Object, most int) error {
	if most == 0 {
		most = maxWeight
	}
	if bounds.Heavier(updated, most) && (old == nil || !bounds.Heavier(old, most)) {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"the object has more than %d bytes in its entries: remove those that it does not need", most))
	}
	now, err := meta.Accessor(updated)
	if err != nil {
		return err
	}
	var before metav1.Object = &metav1.ObjectMeta{}
	if old != nil {
		before, err = meta.Accessor(old)
		if err != nil {
			return err
		}
	}
	for _, list := range []struct {
		name        string
		now, before int
	}{
		{"labels", len(now.GetLabels()), len(before.GetLabels())},
		{"annotations", len(now.GetAnnotations()), len(before.GetAnnotations())},
		{"ownerReferences", len(now.GetOwnerReferences()), len(before.GetOwnerReferences())},
		{"finalizers", len(now.GetFinalizers()), len(before.GetFinalizers())},
		{"managedFields", len(now.GetManagedFields()), len(before.GetManagedFields())},
	} {
		if errs := bounds.Count(field.NewPath("metadata", list.name), list.now, list.before, maxMetadata); len(errs) > 0 {
			return apierrors.NewRequestEntityTooLargeError(errs[0].Error())
		}
	}
	for _, fields := range now.GetManagedFields() {
		// The generic server reports an error for each character, and quotes the whole text each time.
		if len(fields.Manager) > metav1validation.FieldManagerMaxLength {
			return apierrors.NewBadRequest(fmt.Sprintf("metadata.managedFields: a manager must have %d bytes at most, not %d",
				metav1validation.FieldManagerMaxLength, len(fields.Manager)))
		}
	}
	return nil
}
