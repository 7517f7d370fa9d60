// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission is shared by the admission plugins. It returns what a request writes, whether its user has a permission, and which RBAC rule
// would grant it.
package permission

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// RegisterGroup is the API group in which upstream's roles grant managedclusters/accept.
const RegisterGroup = "register.open-cluster-management.io"

// Holds checks each rule and returns the first one that the user has. The authorizer compares names literally, so a rule for many names is checked in
// each of its spellings: the rules of one call are spellings of one permission, and an explicit denial of one ends the search. If the authorizer
// fails, Holds returns no rule and the error.
func Holds(ctx context.Context, a authorizer.Authorizer, who user.Info, rules ...rbac.Permission) (*rbac.Permission, error) {
	for i := range rules {
		r := &rules[i]
		decision, reason, err := a.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: r.Verb, APIGroup: r.Group, APIVersion: "v1",
			Resource: r.Resource, Subresource: r.Subresource, Name: r.Name, Namespace: r.Namespace, ResourceRequest: true,
		})
		switch {
		case decision == authorizer.DecisionAllow:
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("the permission could not be checked, so the request is refused: %w", err)
		case decision == authorizer.DecisionDeny:
			return nil, fmt.Errorf("an authorizer denies %s: %s", r, reason)
		}
	}
	return nil, nil
}
