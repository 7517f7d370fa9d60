// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	driver "github.com/clusterhub/clusterhub/pkg/controllers/registration"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

// role is what is read of a role.
type role struct {
	id    string
	trust string
	tags  map[string]string
}

// getRole returns nil for a role that is not there, or cannot be seen yet.
func (d *Driver) getRole(ctx context.Context, g grant) (*role, error) {
	out, err := d.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(g.HubRole())})
	if is[*iamtypes.NoSuchEntityException](err) {
		return nil, nil
	}
	if err != nil {
		return nil, awsError("IAM GetRole "+g.HubRole(), err)
	}
	r := &role{id: aws.ToString(out.Role.RoleId), trust: aws.ToString(out.Role.AssumeRolePolicyDocument), tags: map[string]string{}}
	for _, tag := range out.Role.Tags {
		r.tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return r, nil
}

// ensureRole makes the role, or makes it what it should be. It returns its ID, and whether it is new.
func (d *Driver) ensureRole(ctx context.Context, g grant) (id string, fresh bool, err error) {
	r, err := d.getRole(ctx, g)
	if err != nil {
		return "", false, err
	}
	if r == nil {
		id, err = d.createRole(ctx, g)
		return id, true, err
	}
	if err := g.owns("the IAM role "+g.HubRole(), r.tags); err != nil {
		return "", false, err
	}
	if d.settle.gone(r.id) {
		return "", false, fmt.Errorf("the IAM role %s was deleted a moment ago and can still be seen", g.HubRole())
	}
	if trust := g.HubTrustPolicy().JSON(); !irsa.Equivalent(r.trust, trust) {
		_, err := d.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: aws.String(g.HubRole()), PolicyDocument: aws.String(trust),
		})
		if err != nil {
			return "", false, trustError("IAM UpdateAssumeRolePolicy "+g.HubRole(), g, err)
		}
	}
	if miss := missing(r.tags, d.wantedTags(g)); len(miss) > 0 {
		_, err := d.iam.TagRole(ctx, &iam.TagRoleInput{RoleName: aws.String(g.HubRole()), Tags: iamTags(miss)})
		if err != nil {
			return "", false, awsError("IAM TagRole "+g.HubRole(), err)
		}
	}
	return r.id, false, d.ensurePolicy(ctx, g)
}

func (d *Driver) createRole(ctx context.Context, g grant) (string, error) {
	account, err := d.account(ctx)
	if err != nil {
		return "", awsError("the hub's credentials for AWS", err)
	}
	if account != "" && account != g.Hub.Account {
		return "", driver.Terminal(fmt.Errorf("the hub's credentials are of the AWS account %s, and its ARN is %s", account, g.Hub))
	}
	out, err := d.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName:                 aws.String(g.HubRole()),
		AssumeRolePolicyDocument: aws.String(g.HubTrustPolicy().JSON()),
		Description:              aws.String("Access of the managed cluster " + g.cluster + " to the hub " + g.Hub.Name),
		Tags:                     iamTags(d.wantedTags(g)),
	})
	if err != nil {
		// A role that is there after all could not be seen a moment ago. The next try reads it.
		return "", trustError("IAM CreateRole "+g.HubRole(), g, err)
	}
	id := aws.ToString(out.Role.RoleId)
	d.settle.created(g, id)
	if err := d.putPolicy(ctx, g); err != nil {
		return "", err
	}
	d.settle.complete(g)
	return id, nil
}

func (d *Driver) ensurePolicy(ctx context.Context, g grant) error {
	out, err := d.iam.GetRolePolicy(ctx, &iam.GetRolePolicyInput{
		RoleName: aws.String(g.HubRole()), PolicyName: aws.String(policyName(g)),
	})
	switch {
	case is[*iamtypes.NoSuchEntityException](err):
		return d.putPolicy(ctx, g)
	case err != nil:
		return awsError("IAM GetRolePolicy "+g.HubRole(), err)
	case irsa.Equivalent(aws.ToString(out.PolicyDocument), g.HubAccessPolicy().JSON()):
		return nil
	}
	return d.putPolicy(ctx, g)
}

func (d *Driver) putPolicy(ctx context.Context, g grant) error {
	_, err := d.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: aws.String(g.HubRole()), PolicyName: aws.String(policyName(g)),
		PolicyDocument: aws.String(g.HubAccessPolicy().JSON()),
	})
	if err != nil {
		return awsError("IAM PutRolePolicy "+g.HubRole(), err)
	}
	return nil
}

func (d *Driver) deleteRole(ctx context.Context, g grant, r *role) error {
	_, err := d.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{
		RoleName: aws.String(g.HubRole()), PolicyName: aws.String(policyName(g)),
	})
	if err != nil && !is[*iamtypes.NoSuchEntityException](err) {
		return awsError("IAM DeleteRolePolicy "+g.HubRole(), err)
	}
	_, err = d.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: aws.String(g.HubRole())})
	if err != nil && !is[*iamtypes.NoSuchEntityException](err) {
		return awsError("IAM DeleteRole "+g.HubRole(), err)
	}
	d.settle.deleted(g, r.id)
	return nil
}

// policyName names the role's one inline policy.
func policyName(g grant) string { return g.HubRole() }

// trustError adds what IAM's text leaves open: it refuses to trust a role that it does not see.
func trustError(what string, g grant, err error) error {
	wrapped := awsError(what, err)
	if is[*iamtypes.MalformedPolicyDocumentException](err) {
		return fmt.Errorf("%w (the managed cluster's role %s has to be there first)", wrapped, g.ManagedRoleARN())
	}
	return wrapped
}

func iamTags(tags map[string]string) []iamtypes.Tag {
	list := make([]iamtypes.Tag, 0, len(tags))
	for key, value := range tags {
		list = append(list, iamtypes.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	slices.SortFunc(list, func(a, b iamtypes.Tag) int {
		if *a.Key < *b.Key {
			return -1
		}
		return 1
	})
	return list
}
