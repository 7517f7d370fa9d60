// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/irsa"
)

// role is the state of a role as it was read.
type role struct {
	id    string
	trust string
	tags  map[string]string
	path  string
	// boundary is the ARN of its permissions boundary, or "".
	boundary string
	// created is zero if AWS does not report it.
	created time.Time
}

// getRole returns nil for a role that does not exist, or cannot be seen yet.
func (d *Driver) getRole(ctx context.Context, g grant) (*role, error) {
	out, err := d.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(g.HubRole())})
	if is[*iamtypes.NoSuchEntityException](err) {
		return nil, nil
	}
	if err != nil {
		return nil, awsError("IAM GetRole "+g.HubRole(), err)
	}
	r := newRole(out.Role)
	r.path = aws.ToString(out.Role.Path)
	if boundary := out.Role.PermissionsBoundary; boundary != nil {
		r.boundary = aws.ToString(boundary.PermissionsBoundaryArn)
	}
	r.trust, r.tags = aws.ToString(out.Role.AssumeRolePolicyDocument), map[string]string{}
	for _, tag := range out.Role.Tags {
		r.tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return r, nil
}

func newRole(of *iamtypes.Role) *role {
	return &role{id: aws.ToString(of.RoleId), created: aws.ToTime(of.CreateDate)}
}

// ensureRole creates or updates the role. It returns it, and whether it is new.
func (d *Driver) ensureRole(ctx context.Context, g grant) (r *role, fresh bool, err error) {
	r, err = d.getRole(ctx, g)
	if err != nil {
		return nil, false, err
	}
	if r == nil {
		r, err = d.createRole(ctx, g)
		return r, true, err
	}
	if err := g.owns("the IAM role "+g.HubRole(), r.tags); err != nil {
		return nil, false, err
	}
	if d.settle.gone(r.id) {
		return nil, false, fmt.Errorf("the IAM role %s was just deleted, but IAM still returns it: retrying", g.HubRole())
	}
	if r.path != g.HubPath.String() {
		return nil, false, driver.Terminal(fmt.Errorf("the IAM role %s already exists with the path %s instead of %s, and the path of a role cannot be changed: "+
			"delete it, and the hub creates it again", g.HubRole(), r.path, g.HubPath))
	}
	// Before it gets any rights.
	if d.boundary != "" && r.boundary != d.boundary {
		_, err := d.iam.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
			RoleName: aws.String(g.HubRole()), PermissionsBoundary: aws.String(d.boundary),
		})
		if err != nil {
			return nil, false, d.boundaryError(awsError("IAM PutRolePermissionsBoundary "+g.HubRole(), err))
		}
	}
	if trust := g.HubTrustPolicy().JSON(); !irsa.Equivalent(r.trust, trust) {
		_, err := d.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: aws.String(g.HubRole()), PolicyDocument: aws.String(trust),
		})
		if err != nil {
			return nil, false, trustError("IAM UpdateAssumeRolePolicy "+g.HubRole(), g, err)
		}
	}
	if miss := missing(r.tags, d.wantedTags(g)); len(miss) > 0 {
		_, err := d.iam.TagRole(ctx, &iam.TagRoleInput{RoleName: aws.String(g.HubRole()), Tags: iamTags(miss)})
		if err != nil {
			return nil, false, awsError("IAM TagRole "+g.HubRole(), err)
		}
	}
	if err := d.ensurePolicy(ctx, g); err != nil {
		return nil, false, err
	}
	return r, false, d.dropPolicies(ctx, g, policyName(g))
}

func (d *Driver) createRole(ctx context.Context, g grant) (*role, error) {
	account, err := d.account(ctx)
	if err != nil {
		return nil, awsError("the hub's credentials for AWS", err)
	}
	if account != "" && account != g.Hub.Account {
		return nil, driver.Terminal(fmt.Errorf("the hub's credentials are for the AWS account %s, but its EKS cluster is %s: "+
			"use credentials of the account of that cluster", account, g.Hub))
	}
	in := &iam.CreateRoleInput{
		RoleName:                 aws.String(g.HubRole()),
		AssumeRolePolicyDocument: aws.String(g.HubTrustPolicy().JSON()),
		Description:              aws.String("Access of the managed cluster " + g.cluster + " to the hub " + g.Hub.Name),
		Tags:                     iamTags(d.wantedTags(g)),
	}
	if g.HubPath != "" {
		in.Path = aws.String(g.HubPath.String())
	}
	if d.boundary != "" {
		in.PermissionsBoundary = aws.String(d.boundary)
	}
	out, err := d.iam.CreateRole(ctx, in)
	if err != nil {
		// The role exists after all, but could not be seen a moment ago. The next try reads it.
		return nil, d.boundaryError(trustError("IAM CreateRole "+g.HubRole(), g, err))
	}
	r := newRole(out.Role)
	d.settle.created(g, *r)
	if err := d.putPolicy(ctx, g); err != nil {
		return nil, err
	}
	d.settle.complete(g)
	return r, nil
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

// deleteRole first empties the trust policy of the role, so that it cannot be assumed any more even if a later step fails.
func (d *Driver) deleteRole(ctx context.Context, g grant, r *role) error {
	if empty := irsa.NoTrustPolicy().JSON(); !irsa.Equivalent(r.trust, empty) {
		_, err := d.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: aws.String(g.HubRole()), PolicyDocument: aws.String(empty),
		})
		if err != nil {
			// The deletion includes this. The error is only reported if the deletion fails, too.
			g.note(awsError("Emptying its trust policy: IAM UpdateAssumeRolePolicy "+g.HubRole(), err).Error())
		}
	}
	if err := d.dropPolicy(ctx, g, policyName(g)); err != nil {
		return err
	}
	err := d.tryDeleteRole(ctx, g)
	if is[*iamtypes.DeleteConflictException](err) {
		// Others have added more to it.
		if err := d.dropPolicies(ctx, g, ""); err != nil {
			return err
		}
		err = d.tryDeleteRole(ctx, g)
	}
	if err != nil {
		return g.with(err)
	}
	d.settle.deleted(g, r.id)
	return nil
}

func (d *Driver) tryDeleteRole(ctx context.Context, g grant) error {
	_, err := d.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: aws.String(g.HubRole())})
	if err != nil && !is[*iamtypes.NoSuchEntityException](err) {
		return awsError("IAM DeleteRole "+g.HubRole(), err)
	}
	return nil
}

// policyName returns the name of the one policy that the hub gives the role, an inline one.
func policyName(g grant) string { return g.HubRole() }

// trustError adds an explanation to IAM's error: it refuses to trust a role that it does not see.
func trustError(what string, g grant, err error) error {
	wrapped := awsError(what, err)
	if is[*iamtypes.MalformedPolicyDocumentException](err) {
		return fmt.Errorf("%w (the managed cluster's role %s must exist first)", wrapped, g.ManagedRoleARN())
	}
	return wrapped
}

// boundaryError adds an explanation to IAM's error: nothing else that these calls name can be missing for long.
func (d *Driver) boundaryError(err error) error {
	var api smithy.APIError
	if d.boundary == "" || !errors.As(err, &api) || api.ErrorCode() != "NoSuchEntity" {
		return err
	}
	return driver.Terminal(fmt.Errorf("%w (the policy of --%s, %s, must exist first)", err, boundaryFlag, d.boundary))
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
