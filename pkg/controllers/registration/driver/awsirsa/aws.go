// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// iamAPI and eksAPI are what is called of AWS. Package irsa's CreatorPolicy allows it, and nothing else.
type iamAPI interface {
	CreateRole(context.Context, *iam.CreateRoleInput, ...func(*iam.Options)) (*iam.CreateRoleOutput, error)
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	DeleteRole(context.Context, *iam.DeleteRoleInput, ...func(*iam.Options)) (*iam.DeleteRoleOutput, error)
	TagRole(context.Context, *iam.TagRoleInput, ...func(*iam.Options)) (*iam.TagRoleOutput, error)
	UpdateAssumeRolePolicy(context.Context, *iam.UpdateAssumeRolePolicyInput, ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error)
	PutRolePolicy(context.Context, *iam.PutRolePolicyInput, ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error)
	GetRolePolicy(context.Context, *iam.GetRolePolicyInput, ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error)
	ListRolePolicies(context.Context, *iam.ListRolePoliciesInput, ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error)
	DeleteRolePolicy(context.Context, *iam.DeleteRolePolicyInput, ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error)
	ListAttachedRolePolicies(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error)
	DetachRolePolicy(context.Context, *iam.DetachRolePolicyInput, ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error)
}

type eksAPI interface {
	CreateAccessEntry(context.Context, *eks.CreateAccessEntryInput, ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error)
	DescribeAccessEntry(context.Context, *eks.DescribeAccessEntryInput, ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error)
	UpdateAccessEntry(context.Context, *eks.UpdateAccessEntryInput, ...func(*eks.Options)) (*eks.UpdateAccessEntryOutput, error)
	DeleteAccessEntry(context.Context, *eks.DeleteAccessEntryInput, ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error)
	ListAssociatedAccessPolicies(context.Context, *eks.ListAssociatedAccessPoliciesInput, ...func(*eks.Options)) (*eks.ListAssociatedAccessPoliciesOutput, error)
	DisassociateAccessPolicy(context.Context, *eks.DisassociateAccessPolicyInput, ...func(*eks.Options)) (*eks.DisassociateAccessPolicyOutput, error)
	TagResource(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error)
}

var (
	_ iamAPI = &iam.Client{}
	_ eksAPI = &eks.Client{}
)

// LoadConfig finds AWS's configuration as all its tools do: environment, files, and, in a pod of EKS, the web identity of
// its service account (AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE). Another endpoint is that of AWS_ENDPOINT_URL_IAM, _EKS
// and _STS; the SDK asks STS for a web identity before it has read AWS_ENDPOINT_URL.
func LoadConfig(ctx context.Context, region string) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithRetryer(newRetryer))
	if err != nil {
		return aws.Config{}, fmt.Errorf("loading the configuration of AWS: %w", err)
	}
	return c, nil
}

// newRetryer tries a call again once, and soon. A worker that waits for AWS keeps other clusters waiting; the queue's
// backoff keeps only its own.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 2
		o.MaxBackoff = 100 * time.Millisecond
	})
}

func newClients(c aws.Config, region string) (iamAPI, eksAPI, func(context.Context) (string, error)) {
	// One for both, so that both share what may be tried again.
	retryer := newRetryer()
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
