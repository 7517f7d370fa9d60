// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"strings"
)

// attachedQuota is AWS's default quota of managed policies of a role.
const attachedQuota = 10

// managedPolicies are the managed policies of AWS that are supported here.
var managedPolicies = map[string]*policy{"AdministratorAccess": mustParsePolicy(AllowAll)}

func mustParsePolicy(text string) *policy {
	p, err := parsePolicy(text, nil)
	if err != nil {
		panic(err)
	}
	return p
}

// managedPolicy returns the managed policy of AWS or of the account with an ARN, or nil.
func (a *Account) managedPolicy(arn string) *policy {
	if own := a.managed[arn]; own != nil {
		return own
	}
	return managedPolicies[strings.TrimPrefix(arn, "arn:"+a.Partition+":iam::aws:policy/")]
}

func attachedContext(r *request, ctx conditionContext) {
	ctx.set("iam:PolicyARN", r.params.str("PolicyArn"))
}

func attachRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	arn := r.params.str("PolicyArn")
	switch {
	case r.who.account.managedPolicy(arn) == nil:
		return nil, fail("NoSuchEntity", "Policy %s does not exist or is not attachable.", arn)
	case slices.Contains(found.attached, arn):
		return nil, nil
	case len(found.attached) >= attachedQuota:
		return nil, fail("LimitExceeded", "Cannot exceed quota for PoliciesPerRole: %d", attachedQuota)
	}
	r.keepPolicies(found)
	found.attached = append(found.attached, arn)
	return nil, nil
}

func detachRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	arn := r.params.str("PolicyArn")
	i := slices.Index(found.attached, arn)
	if i < 0 {
		return nil, fail("NoSuchEntity", "Policy %s was not found.", arn)
	}
	r.keepPolicies(found)
	found.attached = slices.Delete(found.attached, i, i+1)
	return nil, nil
}

func listAttachedRolePolicies(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	type attached struct {
		PolicyName string
		PolicyARN  string `xml:"PolicyArn"`
	}
	var out struct {
		AttachedPolicies []attached `xml:"AttachedPolicies>member"`
		page
	}
	var some []string
	some, out.page, err = paginate(r, slices.Sorted(slices.Values(r.seenPolicies(found).attached)), func(s string) string { return s })
	for _, arn := range some {
		out.AttachedPolicies = append(out.AttachedPolicies, attached{arn[strings.LastIndex(arn, "/")+1:], arn})
	}
	return out, err
}
