// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// Step is one step of a reconciliation. It can be repeated, since the process may end at any point.
type Step struct {
	// Name is the name of the step in logs, such as "add the finalizer".
	Name string
	// Do runs the step. An error ends the reconciliation.
	Do func(context.Context) error
}

// RunSteps runs steps in order, and returns the first error, which is logged with the name of its step.
func RunSteps(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		if err := s.Do(ctx); err != nil {
			ctrl.LoggerFrom(ctx).V(2).Info("A step ended the reconciliation", "step", s.Name, "reason", err.Error())
			return err
		}
	}
	return nil
}
