// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundstest validates objects in tests as the API server does: first the declared bounds, and then the rest.
package boundstest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
)

// Scheme returns a scheme with what install adds.
func Scheme(install func(*runtime.Scheme)) *runtime.Scheme {
	scheme := runtime.NewScheme()
	install(scheme)
	return scheme
}

// Created validates a new object, in the preferred version of its kind.
func Created[T runtime.Object](t testing.TB, scheme *runtime.Scheme, object T, validate func(T) field.ErrorList) field.ErrorList {
	t.Helper()
	if errs := declared(t, scheme, object, nil); len(errs) > 0 {
		return errs
	}
	return validate(object)
}

// Updated validates an update of an object, in the preferred version of its kind.
func Updated[T runtime.Object](t testing.TB, scheme *runtime.Scheme, object, old T, validate func(object, old T) field.ErrorList) field.ErrorList {
	t.Helper()
	if errs := declared(t, scheme, object, old); len(errs) > 0 {
		return errs
	}
	return validate(object, old)
}

func declared(t testing.TB, scheme *runtime.Scheme, object, old runtime.Object) field.ErrorList {
	t.Helper()
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	return bounds.Declared(t.Context(), scheme, scheme.VersionsForGroupKind(kinds[0].GroupKind())[0], object, old)
}
