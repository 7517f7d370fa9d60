// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

// LoadConfig loads the configuration of AWS as all its tools do: from the environment, files, and, in a pod of EKS, the web identity of its service
// account (AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE). Other endpoints can be set by AWS_ENDPOINT_URL_IAM, _EKS and _STS; the SDK calls STS for a
// web identity before it has read AWS_ENDPOINT_URL. The SDK's log is off: its lines on stderr are not structured, and failures are returned as
// errors.
func LoadConfig(ctx context.Context, region string) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithRetryer(newRetryer), config.WithLogger(logging.Nop{}),
		config.WithAPIOptions([]func(*middleware.Stack) error{countCalls}))
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the configuration of AWS: %w", err)
	}
	return c, nil
}

// newClients returns the clients with which the driver calls AWS. Package irsa's CreatorPolicy allows the calls that it makes, and nothing else.
func newClients(c aws.Config, region string) (*iam.Client, *eks.Client, func(context.Context) (string, error)) {
	// Both clients share the budget for retries.
	retryer := newPaced()
	// The region determines the partition of IAM.
	c.Region = region
	account := func(ctx context.Context) (string, error) {
		if c.Credentials == nil {
			return "", nil
		}
		credentials, err := c.Credentials.Retrieve(ctx)
		return credentials.AccountID, err
	}
	return iam.NewFromConfig(c, func(o *iam.Options) { o.Retryer = retryer }),
		eks.NewFromConfig(c, func(o *eks.Options) { o.Retryer = retryer }),
		account
}
