// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"github.com/clusterhub/clusterhub/test/fakeaws/api"
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"net/http"
	"slices"
	"strings"
)

// AddPolicy adds a managed policy of the account, such as for a permissions boundary, and returns its ARN. The name may have a path before it, such
// as team/readers.
func (a *Account) AddPolicy(name, document string) (arn string, err error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	p, err := iampolicy.Parse(document, nil)
	if err != nil {
		return "", err
	}
	arn = a.arn("iam", "", "policy/"+name)
	if a.managed[arn] != nil {
		return "", fmt.Errorf("the policy %s is there already", arn)
	}
	a.managed[arn] = p
	return arn, nil
}

// checkBoundary returns the error with which AWS rejects the ARN as a permissions boundary in this account.
func (a *Account) checkBoundary(arn string) error {
	part := strings.SplitN(arn, ":", 6)
	if len(part) != 6 || part[0] != "arn" || part[2] != "iam" || part[3] != "" || !strings.HasPrefix(part[5], "policy/") || strings.HasSuffix(part[5], "/") {
		return api.Fail("ValidationError", "ARN %s is not valid.", arn)
	}
	if managedPolicy(a, arn) == nil {
		// The model does not declare this code for CreateRole, but AWS returns it.
		return &api.Error{Code: "NoSuchEntity", Message: fmt.Sprintf("Scope ARN: %s does not exist or is not attachable.", arn), Status: http.StatusNotFound}
	}
	return nil
}

// bounded restricts a verdict of policies by the permissions boundary.
func (i identity) bounded(verdict iampolicy.Effect, action, resource string, ctx iampolicy.Context) iampolicy.Effect {
	if verdict != iampolicy.Allowed || i.role == nil || i.role.boundary == "" {
		return verdict
	}
	boundary := managedPolicy(i.account, i.role.boundary)
	if boundary == nil {
		return iampolicy.Silent
	}
	return iampolicy.Decide([]*iampolicy.Policy{boundary}, action, resource, ctx)
}

const boundaryKey = "iam:PermissionsBoundary"

// newBoundaryContext sets the condition key of the boundary that a role will get.
func newBoundaryContext(r *request, ctx iampolicy.Context) {
	if boundary := r.params.Str("PermissionsBoundary"); boundary != "" {
		ctx.Set(boundaryKey, boundary)
	}
}

// boundaryContext sets the condition key of the boundary that the role has.
func boundaryContext(r *request, ctx iampolicy.Context) {
	if found := r.who.account.role(r.params.Str("RoleName")); found != nil && found.boundary != "" {
		ctx.Set(boundaryKey, found.boundary)
	}
}

func putRolePermissionsBoundary(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	boundary := r.params.Str("PermissionsBoundary")
	if err := r.who.account.checkBoundary(boundary); err != nil {
		return nil, err
	}
	keepPolicies(r, found)
	found.boundary = boundary
	return nil, nil
}

func deleteRolePermissionsBoundary(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	if found.boundary == "" {
		return nil, api.Fail("NoSuchEntity", "The role %s does not have a permissions boundary.", found.name)
	}
	keepPolicies(r, found)
	found.boundary = ""
	return nil, nil
}

// xmlBoundary is a permissions boundary in IAM's responses.
type xmlBoundary struct {
	PermissionsBoundaryType, PermissionsBoundaryArn string
}

func newXMLBoundary(arn string) *xmlBoundary {
	if arn == "" {
		return nil
	}
	return &xmlBoundary{"Policy", arn}
}

// attachedQuota is AWS's default quota of managed policies of a role.
const attachedQuota = 10

// managedPolicies are the managed policies of AWS that are supported here.
var managedPolicies = map[string]*iampolicy.Policy{"AdministratorAccess": mustParsePolicy(AllowAll)}

// AllowAll is the identity policy of an administrator.
const AllowAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`

func mustParsePolicy(text string) *iampolicy.Policy {
	p, err := iampolicy.Parse(text, nil)
	if err != nil {
		panic(err)
	}
	return p
}

// managedPolicy returns the managed policy of AWS or of the account with an ARN, or nil.
func managedPolicy(a *Account, arn string) *iampolicy.Policy {
	if own := a.managed[arn]; own != nil {
		return own
	}
	return managedPolicies[strings.TrimPrefix(arn, "arn:"+a.Partition+":iam::aws:policy/")]
}

func attachedContext(r *request, ctx iampolicy.Context) {
	ctx.Set("iam:PolicyARN", r.params.Str("PolicyArn"))
}

func attachRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	arn := r.params.Str("PolicyArn")
	switch {
	case managedPolicy(r.who.account, arn) == nil:
		return nil, api.Fail("NoSuchEntity", "Policy %s does not exist or is not attachable.", arn)
	case slices.Contains(found.attached, arn):
		return nil, nil
	case len(found.attached) >= attachedQuota:
		return nil, api.Fail("LimitExceeded", "Cannot exceed quota for PoliciesPerRole: %d", attachedQuota)
	}
	keepPolicies(r, found)
	found.attached = append(found.attached, arn)
	return nil, nil
}

func detachRolePolicy(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	arn := r.params.Str("PolicyArn")
	i := slices.Index(found.attached, arn)
	if i < 0 {
		return nil, api.Fail("NoSuchEntity", "Policy %s was not found.", arn)
	}
	keepPolicies(r, found)
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
	some, out.page, err = paginate(r, slices.Sorted(slices.Values(seenPolicies(r, found).attached)), func(s string) string { return s })
	for _, arn := range some {
		out.AttachedPolicies = append(out.AttachedPolicies, attached{arn[strings.LastIndex(arn, "/")+1:], arn})
	}
	return out, err
}
