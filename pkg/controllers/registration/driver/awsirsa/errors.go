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

// failure has a text of one line. Its cause is for errors.As, and not shown.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// terminalCodes are the error codes of IAM, EKS and STS for requests that AWS will refuse again.
var terminalCodes = map[string]bool{
	"AccessDenied":                   true,
	"AccessDeniedException":          true,
	"InvalidClientTokenId":           true,
	"InvalidIdentityToken":           true,
	"UnrecognizedClientException":    true,
	"DeleteConflict":                 true, // others have added more to our role than the hub may remove
	"InvalidInput":                   true,
	"InvalidRequestException":        true, // access entries are off in the hub's cluster
	"LimitExceeded":                  true,
	"ResourceLimitExceededException": true,
	"UnmodifiableEntity":             true,
	"ValidationError":                true,
}

// denied reports whether AWS refused a call because the hub does not have the permission.
func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "AccessDenied" || api.ErrorCode() == "AccessDeniedException")
}

// awsError returns the error of AWS, without what only AWS's support can read.
func awsError(what string, err error) error {
	f := &failure{text: what, cause: err}
	// The credentials of a call come from a call to another service, STS, which may have failed.
	operations := 0
	for e := err; e != nil; e = unwrap(e) {
		if operation, ok := e.(*smithy.OperationError); ok {
			operations++
			if operations > 1 {
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
		f.text += ": AWS did not respond in time"
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

// innermost returns the error below the SDK's own, whose texts have request IDs.
func innermost(err error) error {
	for {
		next := unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// unwrap follows the first of several errors: the SDK joins the error that it does not retry.
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

// is reports whether one of AWS's modelled errors is in the chain.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
