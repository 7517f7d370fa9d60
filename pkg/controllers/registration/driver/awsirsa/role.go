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

// iamRoles creates, updates and deletes the IAM roles of clusters.
type iamRoles struct {
	iam *iam.Client
	// account returns the AWS account of the hub's credentials, or "" if they do not name it.
	account  func(context.Context) (string, error)
	boundary string
	tags     map[string]string
	settle   *settling
}

// get returns nil for a role that does not exist, or cannot be seen yet.
func (i *iamRoles) get(ctx context.Context, g grant) (*role, error) {
	out, err := i.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(g.HubRole())})
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

// ensure creates or updates the role. It returns it, and whether it is new.
func (i *iamRoles) ensure(ctx context.Context, g grant) (r *role, fresh bool, err error) {
	r, err = i.get(ctx, g)
	if err != nil {
		return nil, false, err
	}
	if r == nil {
		r, err = i.create(ctx, g)
		return r, true, err
	}
	if err := g.owns("the IAM role "+g.HubRole(), r.tags); err != nil {
		return nil, false, err
	}
	if i.settle.gone(r.id) {
		return nil, false, fmt.Errorf("the IAM role %s was just deleted, but IAM still returns it: retrying", g.HubRole())
	}
	if r.path != g.HubPath.String() {
		return nil, false, driver.Terminal(fmt.Errorf("the IAM role %s already exists with the path %s instead of %s, and the path of a role cannot be changed: "+
			"delete it, and the hub creates it again", g.HubRole(), r.path, g.HubPath))
	}
	// Before it gets any rights.
	if i.boundary != "" && r.boundary != i.boundary {
		_, err := i.iam.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
			RoleName: aws.String(g.HubRole()), PermissionsBoundary: aws.String(i.boundary),
		})
		if err != nil {
			return nil, false, i.boundaryError(awsError("IAM PutRolePermissionsBoundary "+g.HubRole(), err))
		}
	}
	if trust := g.HubTrustPolicy().JSON(); !irsa.Equivalent(r.trust, trust) {
		_, err := i.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: aws.String(g.HubRole()), PolicyDocument: aws.String(trust),
		})
		if err != nil {
			return nil, false, trustError("IAM UpdateAssumeRolePolicy "+g.HubRole(), g, err)
		}
	}
	if miss := missing(r.tags, g.desiredTags(i.tags)); len(miss) > 0 {
		_, err := i.iam.TagRole(ctx, &iam.TagRoleInput{RoleName: aws.String(g.HubRole()), Tags: iamTags(miss)})
		if err != nil {
			return nil, false, awsError("IAM TagRole "+g.HubRole(), err)
		}
	}
	if err := i.ensurePolicy(ctx, g); err != nil {
		return nil, false, err
	}
	return r, false, i.dropPolicies(ctx, g, policyName(g))
}

func (i *iamRoles) create(ctx context.Context, g grant) (*role, error) {
	account, err := i.account(ctx)
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
		Tags:                     iamTags(g.desiredTags(i.tags)),
	}
	if g.HubPath != "" {
		in.Path = aws.String(g.HubPath.String())
	}
	if i.boundary != "" {
		in.PermissionsBoundary = aws.String(i.boundary)
	}
	out, err := i.iam.CreateRole(ctx, in)
	if err != nil {
		// The role exists after all, but could not be seen a moment ago. The next try reads it.
		return nil, i.boundaryError(trustError("IAM CreateRole "+g.HubRole(), g, err))
	}
	r := newRole(out.Role)
	i.settle.created(g, *r)
	if err := i.putPolicy(ctx, g); err != nil {
		return nil, err
	}
	i.settle.complete(g)
	return r, nil
}

func (i *iamRoles) ensurePolicy(ctx context.Context, g grant) error {
	out, err := i.iam.GetRolePolicy(ctx, &iam.GetRolePolicyInput{
		RoleName: aws.String(g.HubRole()), PolicyName: aws.String(policyName(g)),
	})
	switch {
	case is[*iamtypes.NoSuchEntityException](err):
		return i.putPolicy(ctx, g)
	case err != nil:
		return awsError("IAM GetRolePolicy "+g.HubRole(), err)
	case irsa.Equivalent(aws.ToString(out.PolicyDocument), g.HubAccessPolicy().JSON()):
		return nil
	}
	return i.putPolicy(ctx, g)
}

func (i *iamRoles) putPolicy(ctx context.Context, g grant) error {
	_, err := i.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
		RoleName: aws.String(g.HubRole()), PolicyName: aws.String(policyName(g)),
		PolicyDocument: aws.String(g.HubAccessPolicy().JSON()),
	})
	if err != nil {
		return awsError("IAM PutRolePolicy "+g.HubRole(), err)
	}
	return nil
}

// delete first empties the trust policy of the role, so that it cannot be assumed any more even if a later step fails.
func (i *iamRoles) delete(ctx context.Context, g grant, r *role) error {
	if empty := irsa.NoTrustPolicy().JSON(); !irsa.Equivalent(r.trust, empty) {
		_, err := i.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: aws.String(g.HubRole()), PolicyDocument: aws.String(empty),
		})
		if err != nil {
			// The deletion includes this. The error is only reported if the deletion fails, too.
			g.note(awsError("Emptying its trust policy: IAM UpdateAssumeRolePolicy "+g.HubRole(), err).Error())
		}
	}
	if err := i.dropPolicy(ctx, g, policyName(g)); err != nil {
		return err
	}
	err := i.tryDelete(ctx, g)
	if is[*iamtypes.DeleteConflictException](err) {
		// Others have added more to it.
		if err := i.dropPolicies(ctx, g, ""); err != nil {
			return err
		}
		err = i.tryDelete(ctx, g)
	}
	if err != nil {
		return g.with(err)
	}
	i.settle.deleted(g, r.id)
	return nil
}

func (i *iamRoles) tryDelete(ctx context.Context, g grant) error {
	_, err := i.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: aws.String(g.HubRole())})
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
func (i *iamRoles) boundaryError(err error) error {
	var api smithy.APIError
	if i.boundary == "" || !errors.As(err, &api) || api.ErrorCode() != "NoSuchEntity" {
		return err
	}
	return driver.Terminal(fmt.Errorf("%w (the policy of --%s, %s, must exist first)", err, boundaryFlag, i.boundary))
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
