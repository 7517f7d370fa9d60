// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/clusterhub/clusterhub/test/fakeaws"
)

// counted returns the number of calls of one operation, by code.
func counted(t *testing.T, operation string) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, family := range must(metrics.Registry.Gather())(t) {
		if family.GetName() != "clusterhub_aws_calls_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["operation"] == operation && labels["service"] == "IAM" {
				got[labels["code"]] = m.GetCounter().GetValue()
			}
		}
	}
	return got
}

func TestCalls_CountedByCode(t *testing.T) {
	w := newWorld(t, "us-west-2", AccessEntry, nil)
	before := counted(t, "GetRole")
	get := func() error {
		_, err := w.Driver.roles.iam.GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String("ocm-hub-none")}, func(o *iam.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Millisecond })
		})
		return err
	}
	if err := get(); err == nil {
		t.Fatal("there is a role")
	}
	w.Inject(fakeaws.Fault{Operation: "iam:GetRole", Err: fakeaws.Internal})
	if err := get(); err == nil {
		t.Fatal("AWS has answered")
	}
	got := counted(t, "GetRole")
	for code := range got {
		got[code] -= before[code]
		if got[code] == 0 {
			delete(got, code) // of other tests
		}
	}
	if want := map[string]float64{"NoSuchEntity": 1, "InternalFailure": 3}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCodeOf_IsBounded(t *testing.T) {
	api := func(code string) error { return fmt.Errorf("call: %w", &smithy.GenericAPIError{Code: code}) }
	got, want := map[string]string{}, map[string]string{
		"nil": "OK", "away": "none", "Throttling": "Throttling", "AWS.Simple": "AWS.Simple", "": "other", "a b": "other", strings.Repeat("a", 65): "other",
	}
	for code := range want {
		switch code {
		case "nil":
			got[code] = codeOf(nil)
		case "away":
			got[code] = codeOf(errors.New("connection refused"))
		default:
			got[code] = codeOf(api(code))
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
