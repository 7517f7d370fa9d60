// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
)

// fakeAWS is IAM and EKS as far as the driver knows them, with the properties that it has to cope with.
type fakeAWS struct {
	mu      sync.Mutex
	roles   map[string]*fakeRole  // by name
	entries map[string]*fakeEntry // by principal
	calls   []string
	made    int

	// before fails a call before it has an effect; after sees it when it has had it, and may panic.
	before func(call string) error
	after  func(call string)
}

type fakeRole struct {
	id, trust string
	created   time.Time
	tags      map[string]string
	policies  map[string]string
	attached  []string
	// used: it is in an instance profile, which the driver knows nothing of.
	used bool
	// unseen: neither reads nor EKS know of it yet.
	unseen bool
}

type fakeEntry struct {
	ekstypes.AccessEntry
	roleID   string // that EKS keeps to itself
	policies []string
}

// now is later each time.
func (f *fakeAWS) now() time.Time {
	f.made++
	return time.Date(2030, 1, 1, 0, 0, f.made, 0, time.UTC)
}

func newFakeAWS() *fakeAWS {
	return &fakeAWS{roles: map[string]*fakeRole{}, entries: map[string]*fakeEntry{}}
}

// taken returns the calls since it was last asked.
func (f *fakeAWS) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func call[T any](f *fakeAWS, service, name string, do func() (*T, error)) (*T, error) {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	var (
		out *T
		err error
	)
	if f.before != nil {
		err = f.before(name)
	}
	if err == nil {
		out, err = do()
	}
	f.mu.Unlock()
	if f.after != nil {
		f.after(name)
	}
	if err != nil {
		return nil, &smithy.OperationError{ServiceID: service, OperationName: name, Err: err}
	}
	return out, nil
}

func (f *fakeAWS) seen(name *string) (*fakeRole, error) {
	if r := f.roles[*name]; r != nil && !r.unseen {
		return r, nil
	}
	return nil, &iamtypes.NoSuchEntityException{Message: aws.String("The role with name " + *name + " cannot be found.")}
}

func (f *fakeAWS) CreateRole(_ context.Context, in *iam.CreateRoleInput, _ ...func(*iam.Options)) (*iam.CreateRoleOutput, error) {
	return call(f, "IAM", "CreateRole", func() (*iam.CreateRoleOutput, error) {
		if f.roles[*in.RoleName] != nil {
			return nil, &iamtypes.EntityAlreadyExistsException{Message: aws.String("Role with name " + *in.RoleName + " already exists.")}
		}
		now := f.now()
		r := &fakeRole{id: fmt.Sprintf("AROA%d", f.made), trust: *in.AssumeRolePolicyDocument, created: now,
			tags: map[string]string{}, policies: map[string]string{}}
		for _, tag := range in.Tags {
			r.tags[*tag.Key] = *tag.Value
		}
		f.roles[*in.RoleName] = r
		return &iam.CreateRoleOutput{Role: &iamtypes.Role{RoleId: aws.String(r.id), CreateDate: &r.created}}, nil
	})
}

func (f *fakeAWS) GetRole(_ context.Context, in *iam.GetRoleInput, _ ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	return call(f, "IAM", "GetRole", func() (*iam.GetRoleOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		return &iam.GetRoleOutput{Role: &iamtypes.Role{RoleId: aws.String(r.id), Tags: iamTags(r.tags), CreateDate: aws.Time(r.created),
			AssumeRolePolicyDocument: aws.String(url.PathEscape(r.trust))}}, nil
	})
}

func (f *fakeAWS) DeleteRole(_ context.Context, in *iam.DeleteRoleInput, _ ...func(*iam.Options)) (*iam.DeleteRoleOutput, error) {
	return call(f, "IAM", "DeleteRole", func() (*iam.DeleteRoleOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		if len(r.policies) > 0 || len(r.attached) > 0 || r.used {
			return nil, &iamtypes.DeleteConflictException{Message: aws.String("Cannot delete entity, must detach all policies first.")}
		}
		delete(f.roles, *in.RoleName)
		return &iam.DeleteRoleOutput{}, nil
	})
}

func (f *fakeAWS) TagRole(_ context.Context, in *iam.TagRoleInput, _ ...func(*iam.Options)) (*iam.TagRoleOutput, error) {
	return call(f, "IAM", "TagRole", func() (*iam.TagRoleOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		for _, tag := range in.Tags {
			r.tags[*tag.Key] = *tag.Value
		}
		return &iam.TagRoleOutput{}, nil
	})
}

func (f *fakeAWS) UpdateAssumeRolePolicy(_ context.Context, in *iam.UpdateAssumeRolePolicyInput, _ ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error) {
	return call(f, "IAM", "UpdateAssumeRolePolicy", func() (*iam.UpdateAssumeRolePolicyOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		r.trust = *in.PolicyDocument
		return &iam.UpdateAssumeRolePolicyOutput{}, nil
	})
}

func (f *fakeAWS) PutRolePolicy(_ context.Context, in *iam.PutRolePolicyInput, _ ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error) {
	return call(f, "IAM", "PutRolePolicy", func() (*iam.PutRolePolicyOutput, error) {
		r := f.roles[*in.RoleName] // writes go where the role was made
		if r == nil {
			_, err := f.seen(in.RoleName)
			return nil, err
		}
		r.policies[*in.PolicyName] = *in.PolicyDocument
		return &iam.PutRolePolicyOutput{}, nil
	})
}

func (f *fakeAWS) GetRolePolicy(_ context.Context, in *iam.GetRolePolicyInput, _ ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error) {
	return call(f, "IAM", "GetRolePolicy", func() (*iam.GetRolePolicyOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		document, ok := r.policies[*in.PolicyName]
		if !ok {
			return nil, &iamtypes.NoSuchEntityException{}
		}
		return &iam.GetRolePolicyOutput{PolicyDocument: aws.String(url.PathEscape(document))}, nil
	})
}

func (f *fakeAWS) DeleteRolePolicy(_ context.Context, in *iam.DeleteRolePolicyInput, _ ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error) {
	return call(f, "IAM", "DeleteRolePolicy", func() (*iam.DeleteRolePolicyOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		if _, ok := r.policies[*in.PolicyName]; !ok {
			return nil, &iamtypes.NoSuchEntityException{}
		}
		delete(r.policies, *in.PolicyName)
		return &iam.DeleteRolePolicyOutput{}, nil
	})
}

func (f *fakeAWS) ListRolePolicies(_ context.Context, in *iam.ListRolePoliciesInput, _ ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error) {
	return call(f, "IAM", "ListRolePolicies", func() (*iam.ListRolePoliciesOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		return &iam.ListRolePoliciesOutput{PolicyNames: slices.Sorted(maps.Keys(r.policies))}, nil
	})
}

func (f *fakeAWS) ListAttachedRolePolicies(_ context.Context, in *iam.ListAttachedRolePoliciesInput, _ ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error) {
	return call(f, "IAM", "ListAttachedRolePolicies", func() (*iam.ListAttachedRolePoliciesOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		out := &iam.ListAttachedRolePoliciesOutput{}
		for _, arn := range r.attached {
			out.AttachedPolicies = append(out.AttachedPolicies, iamtypes.AttachedPolicy{PolicyArn: aws.String(arn)})
		}
		return out, nil
	})
}

func (f *fakeAWS) DetachRolePolicy(_ context.Context, in *iam.DetachRolePolicyInput, _ ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error) {
	return call(f, "IAM", "DetachRolePolicy", func() (*iam.DetachRolePolicyOutput, error) {
		r, err := f.seen(in.RoleName)
		if err != nil {
			return nil, err
		}
		i := slices.Index(r.attached, *in.PolicyArn)
		if i < 0 {
			return nil, &iamtypes.NoSuchEntityException{}
		}
		r.attached = slices.Delete(r.attached, i, i+1)
		return &iam.DetachRolePolicyOutput{}, nil
	})
}

func (f *fakeAWS) CreateAccessEntry(_ context.Context, in *eks.CreateAccessEntryInput, _ ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error) {
	return call(f, "EKS", "CreateAccessEntry", func() (*eks.CreateAccessEntryOutput, error) {
		if f.entries[*in.PrincipalArn] != nil {
			return nil, &ekstypes.ResourceInUseException{Message: aws.String("The specified access entry resource is already in use on this cluster.")}
		}
		_, name, _ := strings.Cut(*in.PrincipalArn, ":role/")
		r, err := f.seen(&name)
		if err != nil {
			return nil, &ekstypes.InvalidParameterException{Message: aws.String("The specified principalArn is invalid: invalid principal.")}
		}
		for _, s := range append(slices.Clone(in.KubernetesGroups), *in.Username) {
			if strings.HasPrefix(s, "system:") {
				return nil, &ekstypes.InvalidParameterException{Message: aws.String("system: is reserved")}
			}
		}
		f.entries[*in.PrincipalArn] = &fakeEntry{roleID: r.id, AccessEntry: ekstypes.AccessEntry{
			AccessEntryArn: aws.String("arn:aws:eks:::access-entry/" + name), ClusterName: in.ClusterName, PrincipalArn: in.PrincipalArn,
			Username: in.Username, KubernetesGroups: in.KubernetesGroups, Tags: maps.Clone(in.Tags), Type: in.Type,
			CreatedAt: aws.Time(f.now()),
		}}
		return &eks.CreateAccessEntryOutput{}, nil
	})
}

func (f *fakeAWS) entry(principal *string) (*fakeEntry, error) {
	if e := f.entries[*principal]; e != nil {
		return e, nil
	}
	return nil, &ekstypes.ResourceNotFoundException{Message: aws.String("The specified principalArn could not be found.")}
}

func (f *fakeAWS) DescribeAccessEntry(_ context.Context, in *eks.DescribeAccessEntryInput, _ ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error) {
	return call(f, "EKS", "DescribeAccessEntry", func() (*eks.DescribeAccessEntryOutput, error) {
		e, err := f.entry(in.PrincipalArn)
		if err != nil {
			return nil, err
		}
		shown := e.AccessEntry
		shown.Tags = maps.Clone(shown.Tags)
		return &eks.DescribeAccessEntryOutput{AccessEntry: &shown}, nil
	})
}

func (f *fakeAWS) UpdateAccessEntry(_ context.Context, in *eks.UpdateAccessEntryInput, _ ...func(*eks.Options)) (*eks.UpdateAccessEntryOutput, error) {
	return call(f, "EKS", "UpdateAccessEntry", func() (*eks.UpdateAccessEntryOutput, error) {
		e, err := f.entry(in.PrincipalArn)
		if err != nil {
			return nil, err
		}
		e.Username, e.KubernetesGroups = in.Username, in.KubernetesGroups
		return &eks.UpdateAccessEntryOutput{}, nil
	})
}

func (f *fakeAWS) DeleteAccessEntry(_ context.Context, in *eks.DeleteAccessEntryInput, _ ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error) {
	return call(f, "EKS", "DeleteAccessEntry", func() (*eks.DeleteAccessEntryOutput, error) {
		if _, err := f.entry(in.PrincipalArn); err != nil {
			return nil, err
		}
		delete(f.entries, *in.PrincipalArn)
		return &eks.DeleteAccessEntryOutput{}, nil
	})
}

func (f *fakeAWS) ListAssociatedAccessPolicies(_ context.Context, in *eks.ListAssociatedAccessPoliciesInput, _ ...func(*eks.Options)) (*eks.ListAssociatedAccessPoliciesOutput, error) {
	return call(f, "EKS", "ListAssociatedAccessPolicies", func() (*eks.ListAssociatedAccessPoliciesOutput, error) {
		e, err := f.entry(in.PrincipalArn)
		if err != nil {
			return nil, err
		}
		out := &eks.ListAssociatedAccessPoliciesOutput{}
		for _, arn := range e.policies {
			out.AssociatedAccessPolicies = append(out.AssociatedAccessPolicies, ekstypes.AssociatedAccessPolicy{PolicyArn: aws.String(arn)})
		}
		return out, nil
	})
}

func (f *fakeAWS) DisassociateAccessPolicy(_ context.Context, in *eks.DisassociateAccessPolicyInput, _ ...func(*eks.Options)) (*eks.DisassociateAccessPolicyOutput, error) {
	return call(f, "EKS", "DisassociateAccessPolicy", func() (*eks.DisassociateAccessPolicyOutput, error) {
		e, err := f.entry(in.PrincipalArn)
		if err != nil {
			return nil, err
		}
		i := slices.Index(e.policies, *in.PolicyArn)
		if i < 0 {
			return nil, &ekstypes.ResourceNotFoundException{}
		}
		e.policies = slices.Delete(e.policies, i, i+1)
		return &eks.DisassociateAccessPolicyOutput{}, nil
	})
}

func (f *fakeAWS) TagResource(_ context.Context, in *eks.TagResourceInput, _ ...func(*eks.Options)) (*eks.TagResourceOutput, error) {
	return call(f, "EKS", "TagResource", func() (*eks.TagResourceOutput, error) {
		for _, e := range f.entries {
			if *e.AccessEntryArn == *in.ResourceArn {
				if e.Tags == nil {
					e.Tags = map[string]string{}
				}
				maps.Copy(e.Tags, in.Tags)
				return &eks.TagResourceOutput{}, nil
			}
		}
		return nil, &ekstypes.NotFoundException{}
	})
}

// mustBeEmpty fails when something has been left behind.
func (f *fakeAWS) mustBeEmpty(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.roles {
		t.Errorf("the role %s is left", name)
	}
	for arn := range f.entries {
		t.Errorf("the access entry of %s is left", arn)
	}
}
