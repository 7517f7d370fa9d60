// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/kit"
)

// TestSteps_StopAtTheFirstError: steps run in order until one fails. The error is reported with the reason of an Outcome, or else of the step.
func TestSteps_StopAtTheFirstError(t *testing.T) {
	plain := errors.New("plain")
	never := func(*pass) bool { return false }
	for name, test := range map[string]struct {
		err    error
		reason string
		want   string
	}{
		"no error":                    {nil, "StepFailed", ""},
		"an error":                    {plain, "StepFailed", "StepFailed"},
		"a step without a reason":     {plain, "", ""},
		"an Outcome":                  {kit.Outcomef("Waiting", "waits"), "StepFailed", "Waiting"},
		"an Outcome of such a step":   {errors.Join(plain, kit.Outcomef("Waiting", "waits")), "", "Waiting"},
		"an Outcome without a reason": {kit.Requeue(1), "StepFailed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			stepOf := func(name string, when func(*pass) bool, err error) step {
				return step{name, func(*pass, context.Context) error { ran = append(ran, name); return err }, when, test.reason}
			}
			reason, err := (&pass{}).run(t.Context(), []step{
				stepOf("first", always, nil), stepOf("skipped", never, plain), stepOf("second", always, test.err), stepOf("third", always, nil)})
			if reason != test.want || !errors.Is(err, test.err) {
				t.Errorf("the reason is %q with error %v, want %q with %v", reason, err, test.want, test.err)
			}
			want := []string{"first", "second"}
			if test.err == nil {
				want = append(want, "third")
			}
			if !slices.Equal(ran, want) {
				t.Errorf("the steps are %q, want %q", ran, want)
			}
		})
	}
}
