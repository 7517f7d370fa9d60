// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"net/http"
)

// Error is an error as AWS answers it.
type Error struct {
	Code, Message string
	// Status is the HTTP status. By default it is that of the code, which must then be one that AWS's model declares
	// for the operation, or one of those common to all operations.
	Status int
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// The failures that can be injected, next to any *Error.
var (
	// Throttled is the answer to too many requests, with each service's own code.
	Throttled = &Error{Code: "Throttling", Message: "Rate exceeded"}
	// Internal is a failure of the service's own.
	Internal = &Error{Code: "InternalFailure", Message: "The request processing has failed because of an unknown error."}
	// Cut closes the connection without an answer.
	Cut = &Error{Code: "Cut", Message: "the connection is closed without an answer", Status: 499}
)

func fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error {
	return fail("MalformedPolicyDocument", format, args...)
}

// unsupported is the answer to what AWS knows but fakeaws does not.
func unsupported(what string) error {
	return &Error{"FakeAWSUnsupported", "fakeaws does not know " + what, http.StatusNotImplemented}
}

// commonErrors may come from any operation; the models do not list them. EKS, with its protocol, has other names.
var commonErrors = map[string]struct {
	status  int
	eksCode string
}{
	"AccessDenied":               {http.StatusForbidden, "AccessDeniedException"},
	"ExpiredToken":               {http.StatusForbidden, "ExpiredTokenException"},
	"IncompleteSignature":        {http.StatusBadRequest, "IncompleteSignatureException"},
	"InternalFailure":            {http.StatusInternalServerError, "InternalFailure"},
	"InvalidAction":              {http.StatusBadRequest, "UnknownOperationException"},
	"InvalidClientTokenId":       {http.StatusForbidden, "UnrecognizedClientException"},
	"MissingAuthenticationToken": {http.StatusForbidden, "MissingAuthenticationTokenException"},
	"SignatureDoesNotMatch":      {http.StatusForbidden, "InvalidSignatureException"},
	"Throttling":                 {http.StatusBadRequest, "ThrottlingException"},
	"ValidationError":            {http.StatusBadRequest, ""},
}

// eksValidation are the codes that an EKS operation may have for a request that is wrong, the preferred first.
var eksValidation = []string{"InvalidParameterException", "InvalidRequestException", "BadRequestException", "ClientException"}

// complete fills in the status, and the code as the service has it. An error that AWS does not answer to this operation
// is a fault of fakeaws, which tests must not take for AWS's behaviour.
func (e *Error) complete(service string, op *operationModel) *Error {
	if e.Status != 0 {
		return e
	}
	out := *e
	if op != nil {
		if out.Status = op.Errors[e.Code]; out.Status != 0 {
			return &out
		}
	}
	common, ok := commonErrors[e.Code]
	if !ok {
		return &Error{"FakeAWSBug", "AWS's model does not declare for this operation: " + e.Error(), http.StatusNotImplemented}
	}
	out.Status = common.status
	if service == "eks" {
		out.Code = common.eksCode
		for _, code := range eksValidation {
			if out.Code == "" && op != nil && op.Errors[code] != 0 {
				out.Code = code
			}
		}
	}
	return &out
}
