// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

// Additional rights that others have given the role or its access entry are removed. If the hub may not do that, the grant continues with a
// warning: the policy of the hub's own role may be older than these permissions.

// dropPolicies removes the role's policies, except the inline one to keep.
func (i *iamRoles) dropPolicies(ctx context.Context, g grant, keep string) error {
	inline, err := i.inlinePolicies(ctx, g)
	if err := g.unlessDenied(err); err != nil {
		return err
	}
	for _, name := range inline {
		if name == keep {
			continue
		}
		if err := g.dropped("the inline policy "+name, i.dropPolicy(ctx, g, name)); err != nil {
			return err
		}
	}
	attached, err := i.attachedPolicies(ctx, g)
	if err := g.unlessDenied(err); err != nil {
		return err
	}
	for _, arn := range attached {
		_, err := i.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: aws.String(g.HubRole()), PolicyArn: aws.String(arn)})
		if is[*iamtypes.NoSuchEntityException](err) {
			continue
		}
		if err != nil {
			err = awsError("IAM DetachRolePolicy "+g.HubRole(), err)
		}
		if err := g.dropped("the policy "+arn, err); err != nil {
			return err
		}
	}
	return nil
}

func (i *iamRoles) inlinePolicies(ctx context.Context, g grant) (names []string, err error) {
	pages := iam.NewListRolePoliciesPaginator(i.iam, &iam.ListRolePoliciesInput{RoleName: aws.String(g.HubRole())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsError("IAM ListRolePolicies "+g.HubRole(), err)
		}
		names = append(names, page.PolicyNames...)
	}
	return names, nil
}

func (i *iamRoles) attachedPolicies(ctx context.Context, g grant) (arns []string, err error) {
	pages := iam.NewListAttachedRolePoliciesPaginator(i.iam, &iam.ListAttachedRolePoliciesInput{RoleName: aws.String(g.HubRole())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsError("IAM ListAttachedRolePolicies "+g.HubRole(), err)
		}
		for _, policy := range page.AttachedPolicies {
			arns = append(arns, aws.ToString(policy.PolicyArn))
		}
	}
	return arns, nil
}

func (i *iamRoles) dropPolicy(ctx context.Context, g grant, name string) error {
	_, err := i.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: aws.String(g.HubRole()), PolicyName: aws.String(name)})
	if err != nil && !is[*iamtypes.NoSuchEntityException](err) {
		return awsError("IAM DeleteRolePolicy "+g.HubRole(), err)
	}
	return nil
}

// dropPolicies removes EKS's access policies from the entry: the hub grants rights by groups, and none by these.
func (a *accessEntries) dropPolicies(ctx context.Context, g grant) error {
	cluster, principal := aws.String(g.Hub.Name), aws.String(g.HubRoleARN())
	var arns []string
	pages := eks.NewListAssociatedAccessPoliciesPaginator(a.eks, &eks.ListAssociatedAccessPoliciesInput{ClusterName: cluster, PrincipalArn: principal})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return g.unlessDenied(awsError("EKS ListAssociatedAccessPolicies "+g.HubRole(), err))
		}
		for _, policy := range page.AssociatedAccessPolicies {
			arns = append(arns, aws.ToString(policy.PolicyArn))
		}
	}
	for _, arn := range arns {
		_, err := a.eks.DisassociateAccessPolicy(ctx, &eks.DisassociateAccessPolicyInput{ClusterName: cluster, PrincipalArn: principal, PolicyArn: aws.String(arn)})
		if is[*ekstypes.ResourceNotFoundException](err) {
			continue
		}
		if err != nil {
			err = awsError("EKS DisassociateAccessPolicy "+g.HubRole(), err)
		}
		if err := g.dropped("the EKS access policy "+arn, err); err != nil {
			return err
		}
	}
	return nil
}

// notes are messages about a cluster that has all that it needs.
type notes struct{ all []string }

func (n *notes) note(text string) { n.all = append(n.all, text) }

// unlessDenied adds a note that the hub does not have a permission, and returns any other error.
func (n *notes) unlessDenied(err error) error {
	if !denied(err) {
		return err
	}
	n.note("Permissions that others may have given it are not removed: " + err.Error())
	return nil
}

// dropped adds a note about the removal of additional rights.
func (n *notes) dropped(what string, err error) error {
	switch {
	case err == nil:
		n.note(fmt.Sprintf("Others had given it %s, which is removed", what))
	case denied(err):
		n.note(fmt.Sprintf("Others have given it %s, which the hub may not remove: %s", what, err))
	default:
		return err
	}
	return nil
}

// warning returns the notes as a driver.Warning, or nil.
func (n *notes) warning() error {
	if len(n.all) == 0 {
		return nil
	}
	return driver.Warning(strings.Join(n.all, ". "))
}

// with adds the notes to an error.
func (n *notes) with(err error) error {
	if len(n.all) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(n.all, ". "))
}
