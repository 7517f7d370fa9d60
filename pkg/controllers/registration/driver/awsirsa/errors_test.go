// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

func TestAWSError_IsOneLine(t *testing.T) {
	api := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "so it is"} }
	for name, test := range map[string]struct {
		err      error
		terminal bool
		text     string
	}{
		"an error of AWS":      {api("Throttling"), false, "Throttling: so it is"},
		"a refusal":            {api("AccessDenied"), true, "AccessDenied: so it is"},
		"a text of many lines": {&smithy.GenericAPIError{Code: "X", Message: "a\nb\t c"}, false, "X: a b c"},
		"no network":           {fmt.Errorf("https response error StatusCode: 0, RequestID: , %w", errors.New("dial tcp: refused")), false, "dial tcp: refused"},
		"no answer":            {context.DeadlineExceeded, false, "AWS did not respond in time"},
		"no credentials": {fmt.Errorf("get identity: %w", &smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity",
			Err: api("AccessDenied")}), true, "STS AssumeRoleWithWebIdentity: AccessDenied: so it is"},
	} {
		err := awsError("IAM GetRole x", &smithy.OperationError{ServiceID: "IAM", OperationName: "GetRole", Err: test.err})
		if want := "IAM GetRole x: " + test.text; err.Error() != want || errors.Is(err, driver.ErrTerminal) != test.terminal {
			t.Errorf("%s: got %q, terminal %t, want %q, %t", name, err, errors.Is(err, driver.ErrTerminal), want, test.terminal)
		}
		if !errors.Is(err, test.err) {
			t.Errorf("%s: its cause is lost", name)
		}
	}
}
