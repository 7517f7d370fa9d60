// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"net/http"
	"strings"
)

// AddPolicy adds a managed policy of the account, such as for a permissions boundary, and returns its ARN. The name may have a path before it, such
// as team/readers.
func (a *Account) AddPolicy(name, document string) (arn string, err error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	p, err := parsePolicy(document, nil)
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
		return fail("ValidationError", "ARN %s is not valid.", arn)
	}
	if a.managedPolicy(arn) == nil {
		// The model does not declare this code for CreateRole, but AWS returns it.
		return &Error{"NoSuchEntity", fmt.Sprintf("Scope ARN: %s does not exist or is not attachable.", arn), http.StatusNotFound}
	}
	return nil
}

// bounded restricts a verdict of policies by the permissions boundary.
func (i identity) bounded(verdict effect, action, resource string, ctx conditionContext) effect {
	if verdict != allowed || i.role == nil || i.role.boundary == "" {
		return verdict
	}
	boundary := i.account.managedPolicy(i.role.boundary)
	if boundary == nil {
		return silent
	}
	return decide([]*policy{boundary}, action, resource, ctx)
}

const boundaryKey = "iam:PermissionsBoundary"

// newBoundaryContext sets the condition key of the boundary that a role will get.
func newBoundaryContext(r *request, ctx conditionContext) {
	if boundary := r.params.str("PermissionsBoundary"); boundary != "" {
		ctx.set(boundaryKey, boundary)
	}
}

// boundaryContext sets the condition key of the boundary that the role has.
func boundaryContext(r *request, ctx conditionContext) {
	if found := r.who.account.role(r.params.str("RoleName")); found != nil && found.boundary != "" {
		ctx.set(boundaryKey, found.boundary)
	}
}

func putRolePermissionsBoundary(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	boundary := r.params.str("PermissionsBoundary")
	if err := r.who.account.checkBoundary(boundary); err != nil {
		return nil, err
	}
	r.keepPolicies(found)
	found.boundary = boundary
	return nil, nil
}

func deleteRolePermissionsBoundary(r *request) (any, error) {
	found, err := r.find()
	if err != nil {
		return nil, err
	}
	if found.boundary == "" {
		return nil, fail("NoSuchEntity", "The role %s does not have a permissions boundary.", found.name)
	}
	r.keepPolicies(found)
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
