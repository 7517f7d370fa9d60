// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
)

// refusal returns a function that converts the errors of Refuse to a 400. It has the invalid fields, like a 422.
func (k *Kind[T]) refusal() func(updated, old runtime.Object) error {
	if k.Refuse == nil {
		return nil
	}
	return func(updated, old runtime.Object) error {
		object, before := updated.(T), k.New()
		if old != nil {
			before = old.(T)
		}
		errs := bounds.First(k.Refuse(object, before))
		if len(errs) == 0 {
			return nil
		}
		name := object.GetName()
		if name == "" {
			name = object.GetGenerateName()
		}
		err := apierrors.NewInvalid(schema.GroupKind{Group: k.Resource.Group, Kind: k.Singular}, name, errs)
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
		return err
	}
}
