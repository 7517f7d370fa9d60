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
)

// RegisterGroup is the API group in which upstream's roles grant managedclusters/accept.
const RegisterGroup = "register.open-cluster-management.io"

// Rule is one permission: a verb on a resource or subresource, for one name or for all. Without a namespace, it is for cluster-scoped objects.
type Rule struct {
	Verb, Group, Resource, Subresource, Name string
	Namespace                                string
}

// String returns the rule as it is written in a Role or ClusterRole, and where it must be bound. It omits a name that the server has not generated
// yet, which no rule can have.
func (r Rule) String() string {
	names, where := "", ""
	if r.Name != "" {
		names = fmt.Sprintf("resourceNames: [%q], ", r.Name)
	}
	if r.Namespace != "" {
		where = " in the namespace " + r.Namespace
	}
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], %sverbs: [%q]}%s", r.Group, r.resource(), names, r.Verb, where)
}

// resource returns the resource with the subresource, as it is written in a role.
func (r Rule) resource() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Holds checks each rule and returns the first one that the user has. The authorizer compares names literally, so a rule for many names is checked in
// each of its spellings: the rules of one call are spellings of one permission, and an explicit denial of one ends the search. If the authorizer
// fails, Holds returns no rule and the error.
func Holds(ctx context.Context, a authorizer.Authorizer, who user.Info, rules ...Rule) (*Rule, error) {
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
