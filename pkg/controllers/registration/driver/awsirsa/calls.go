// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"regexp"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// calls has a series for each operation of the driver and each code of the responses of AWS.
var calls = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "clusterhub_aws_calls_total",
	Help: "Requests to AWS, counting each attempt, by service, operation, and the error code of the response, OK without an error.",
}, []string{"service", "operation", "code"})

func init() { metrics.Registry.MustRegister(calls) }

// errorCode matches the codes of AWS. Other texts of an endpoint are in no label.
var errorCode = regexp.MustCompile(`^[A-Za-z.]{1,64}$`)

// countCalls adds a counter of calls to an AWS client. It runs inside of the retries, so that each attempt counts.
func countCalls(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("CountCalls", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleFinalize(ctx, in)
		calls.WithLabelValues(awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx), codeOf(err)).Inc()
		return out, metadata, err
	}), middleware.After)
}

// codeOf returns the code of a response; it is "none" if AWS has not responded.
func codeOf(err error) string {
	if err == nil {
		return "OK"
	}
	var api smithy.APIError
	switch {
	case !errors.As(err, &api):
		return "none"
	case !errorCode.MatchString(api.ErrorCode()):
		return "other"
	}
	return api.ErrorCode()
}
