// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Declared validates an object of the internal version against the bounds that the types of an API version declare by markers. It does not validate
// values that are equal to those of old, which is nil for a new object. Handwritten validation runs after it and may rely on the bounds.
func Declared(ctx context.Context, scheme *runtime.Scheme, version schema.GroupVersion, object, old runtime.Object) field.ErrorList {
	if declares, err := declaresBounds(scheme, version, object); !declares {
		return internal(err)
	}
	// Validation does not modify objects: what is converted may share their memory.
	versioned, err := scheme.UnsafeConvertToVersion(object, version)
	if err != nil {
		return internal(err)
	}
	if old == nil {
		return withoutItems(scheme.Validate(ctx, nil, versioned))
	}
	oldVersioned, err := scheme.UnsafeConvertToVersion(old, version)
	if err != nil {
		return internal(err)
	}
	return withoutItems(scheme.ValidateUpdate(ctx, nil, versioned, oldVersioned))
}

// withoutItems drops the values of errors about duplicate items of lists: they are whole items, which may be long or confidential. The path
// identifies the item.
func withoutItems(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Type == field.ErrorTypeDuplicate {
			err.BadValue = field.OmitValueType{}
		}
	}
	return errs
}

func declaresBounds(scheme *runtime.Scheme, version schema.GroupVersion, object runtime.Object) (bool, error) {
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		return false, err
	}
	empty, err := scheme.New(version.WithKind(kinds[0].Kind))
	return err == nil && scheme.HasValidationFunc(empty), err
}

func internal(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	return field.ErrorList{field.InternalError(nil, err)}
}
