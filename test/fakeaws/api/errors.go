// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
)

// Error is an error response of AWS.
type Error struct {
	Code, Message string
	// Status is the HTTP status. By default it is the status of the code, which must then be one that AWS's model declares for the operation, or one
	// of those common to all operations.
	Status int
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func Fail(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func Malformed(format string, args ...any) error {
	return Fail("MalformedPolicyDocument", format, args...)
}

// Unsupported returns the error for features of AWS that fakeaws does not support.
func Unsupported(what string) error {
	return &Error{"FakeAWSUnsupported", "fakeaws does not know " + what, http.StatusNotImplemented}
}

// CommonErrors are possible for any operation and are not in the models. EKS, with its protocol, uses other names.
var CommonErrors = map[string]struct {
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

// eksValidation are the codes that an EKS operation may have for an invalid request, the preferred first.
var eksValidation = []string{"InvalidParameterException", "InvalidRequestException", "BadRequestException", "ClientException"}

// Complete sets the status, and the code of the service. An error that AWS does not return for this operation is a bug of fakeaws, which tests must
// not mistake for AWS's behavior.
func (e *Error) Complete(service string, op *OperationModel) *Error {
	if e.Status != 0 {
		return e
	}
	out := *e
	if op != nil {
		out.Status = op.Errors[e.Code]
		if out.Status != 0 {
			return &out
		}
	}
	common, ok := CommonErrors[e.Code]
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
