// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/names"
)

// Strategy is what the strategies of our kinds have in common: an update creates nothing, and has to say which version it
// is based on when it is not a patch.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewStrategy returns the common part for kinds of the scheme.
func NewStrategy(scheme *runtime.Scheme) Strategy {
	return Strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// Canonicalize implements rest.RESTCreateStrategy and rest.RESTUpdateStrategy.
func (Strategy) Canonicalize(runtime.Object) {}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
