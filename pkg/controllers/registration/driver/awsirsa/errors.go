// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

// failure is one line of text. The error below it is for errors.As, not to be shown.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// terminalCodes are the error codes of IAM, EKS and STS by which AWS refuses what it will refuse again.
var terminalCodes = map[string]bool{
	"AccessDenied":                   true,
	"AccessDeniedException":          true,
	"InvalidClientTokenId":           true,
	"InvalidIdentityToken":           true,
	"UnrecognizedClientException":    true,
	"DeleteConflict":                 true, // others have done more with our role than the hub may undo
	"InvalidInput":                   true,
	"InvalidRequestException":        true, // access entries are off in the hub's cluster
	"LimitExceeded":                  true,
	"ResourceLimitExceededException": true,
	"UnmodifiableEntity":             true,
	"ValidationError":                true,
}

// denied says that AWS refuses what the hub lacks a right for.
func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "AccessDenied" || api.ErrorCode() == "AccessDeniedException")
}

// awsError is what AWS says, without what only AWS's support can read.
func awsError(what string, err error) error {
	f := &failure{text: what, cause: err}
	// The credentials of a call to one service are those of a call to another, STS, which may be what has failed.
	operations := 0
	for e := err; e != nil; e = unwrap(e) {
		if operation, ok := e.(*smithy.OperationError); ok {
			if operations++; operations > 1 {
				f.text += ": " + operation.Service() + " " + operation.Operation()
			}
		}
	}
	var (
		api  smithy.APIError
		send *smithyhttp.RequestSendError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.text += ": AWS did not answer in time"
	case errors.As(err, &api):
		f.text += ": " + oneLine(api.ErrorCode()+": "+api.ErrorMessage())
		if terminalCodes[api.ErrorCode()] {
			return driver.Terminal(f)
		}
	case errors.As(err, &send):
		f.text += ": " + oneLine(send.Err.Error())
	default:
		f.text += ": " + oneLine(innermost(err).Error())
	}
	return f
}

// innermost is the error below the SDK's own, whose texts have identifiers of requests.
func innermost(err error) error {
	for {
		next := unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// unwrap follows the first of several errors: the SDK joins to it that it does not try again.
func unwrap(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()[0]
	}
	return errors.Unwrap(err)
}

func oneLine(s string) string {
	const most = 600
	s = strings.TrimSuffix(strings.Join(strings.Fields(s), " "), ":")
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// is says whether one of AWS's modelled errors is in the chain.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
