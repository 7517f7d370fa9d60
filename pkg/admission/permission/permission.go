// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission is the kit of the admission plugins: what a request writes, whether its user holds a permission, and which
// RBAC rule would grant it.
package permission

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// RegisterGroup is the API group under which upstream's roles grant managedclusters/accept.
const RegisterGroup = "register.open-cluster-management.io"

// Rule is one right: a verb on a name of a resource, or of a subresource. Without a namespace it is a right on objects
// that are in none.
type Rule struct {
	Verb, Group, Resource, Subresource, Name string
	Namespace                                string
}

// String is the rule as it stands in a Role or ClusterRole, and where it has to be bound. A name that the server is yet to
// make can be in no rule.
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

// resource is written as in a role, with the subresource.
func (r Rule) resource() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Holds asks the authorizer for each rule in turn and returns the first one that the user holds. The authorizer compares
// names literally, so a rule for many names is asked for under each of its spellings: the rules of one call are spellings of
// one right, and an explicit denial of one ends the search. If the authorizer cannot be asked, the user holds none, and the
// error says why.
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
