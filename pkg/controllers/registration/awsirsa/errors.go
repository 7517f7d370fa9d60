// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrTerminal is in the chain of an error that trying again does not mend: somebody has to change something first, in AWS,
// in aws-auth or in the cluster. As nobody may tell us when he has, try again all the same, but seldom. All other errors
// pass: throttling, and what AWS has not told all of its parts yet.
var ErrTerminal = errors.New("somebody has to change something before it works")

// failure is one line of text. The error below it is for errors.As, not to be shown.
type failure struct {
	text     string
	terminal bool
	cause    error
}

func (f *failure) Error() string        { return f.text }
func (f *failure) Unwrap() error        { return f.cause }
func (f *failure) Is(target error) bool { return f.terminal && target == ErrTerminal }

// Terminal says the same as ErrTerminal to those who do not import this package.
func (f *failure) Terminal() bool { return f.terminal }

func terminal(err error) error {
	return &failure{text: err.Error(), terminal: true, cause: err}
}

// terminalCodes are the error codes of IAM, EKS and STS by which AWS refuses what it will refuse again.
var terminalCodes = map[string]bool{
	"AccessDenied":                   true,
	"AccessDeniedException":          true,
	"InvalidClientTokenId":           true,
	"InvalidIdentityToken":           true,
	"UnrecognizedClientException":    true,
	"DeleteConflict":                 true, // somebody has attached a policy to our role
	"InvalidInput":                   true,
	"InvalidRequestException":        true, // access entries are off in the hub's cluster
	"LimitExceeded":                  true,
	"ResourceLimitExceededException": true,
	"UnmodifiableEntity":             true,
	"ValidationError":                true,
}

// awsError is what AWS says, without what only AWS's support can read.
func awsError(what string, err error) error {
	f := &failure{text: what, cause: err}
	// The credentials of a call to one service are those of a call to another, STS, which may be what has failed.
	operations := 0
	for e := err; e != nil; e = errors.Unwrap(e) {
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
		f.terminal = terminalCodes[api.ErrorCode()]
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
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
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

func validateTags(tags map[string]string) error {
	const (
		mostTags     = 40 // of AWS's 50: the driver has some of its own
		longestKey   = 128
		longestValue = 256
	)
	if len(tags) > mostTags {
		return fmt.Errorf("%d tags are too many: AWS has room for %d", len(tags), mostTags)
	}
	keys := map[string]bool{}
	for key, value := range tags {
		lower := strings.ToLower(key)
		if keys[lower] {
			return fmt.Errorf("the tag %q is there twice: IAM does not tell its case apart", lower)
		}
		keys[lower] = true
		switch {
		case key == "" || len(key) > longestKey || len(value) > longestValue:
			return fmt.Errorf("the tag %q: a key has 1 to %d characters, a value at most %d", key, longestKey, longestValue)
		case strings.HasPrefix(lower, "aws:"):
			return fmt.Errorf(`the tag %q: AWS keeps "aws:" to itself`, key)
		case ownTag(key):
			return fmt.Errorf("the tag %q is the hub's own", key)
		}
	}
	return nil
}
