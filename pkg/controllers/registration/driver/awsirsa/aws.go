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

// LoadConfig finds AWS's configuration as all its tools do: environment, files, and, in a pod of EKS, the web identity of
// its service account (AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE). Another endpoint is that of AWS_ENDPOINT_URL_IAM, _EKS
// and _STS; the SDK asks STS for a web identity before it has read AWS_ENDPOINT_URL. The SDK's log is off: its lines on stderr are not structured,
// and what fails is returned as an error.
func LoadConfig(ctx context.Context, region string) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithRetryer(newRetryer), config.WithLogger(logging.Nop{}),
		config.WithAPIOptions([]func(*middleware.Stack) error{countCalls}))
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the configuration of AWS: %w", err)
	}
	return c, nil
}

// newClients makes what the driver calls AWS by. Package irsa's CreatorPolicy allows the calls that it makes, and nothing else.
func newClients(c aws.Config, region string) (*iam.Client, *eks.Client, func(context.Context) (string, error)) {
	// One for both, so that both share what may be tried again.
	retryer := newPaced()
	// The region says in which partition IAM is.
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
