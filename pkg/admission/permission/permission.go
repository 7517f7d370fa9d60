// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permission is the kit of the admission plugins: what a request writes, whether its user holds a permission, and which
// RBAC rule would grant it.
package permission

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/admission"
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
	resource, names, where := r.Resource, "", ""
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Name != "" {
		names = fmt.Sprintf("resourceNames: [%q], ", r.Name)
	}
	if r.Namespace != "" {
		where = " in the namespace " + r.Namespace
	}
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], %sverbs: [%q]}%s", r.Group, resource, names, r.Verb, where)
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

// maxNamed is how many refusals one answer names: enough to see what is wrong. Each costs questions to the authorizer.
const maxNamed = 4

// Denied collects what a user lacks for one request.
type Denied struct {
	who      user.Info
	what     []string
	rules    []string
	failures []error
	unseen   int
}

// For starts the collection for a user.
func For(who user.Info) *Denied { return &Denied{who: who} }

// Lacks notes what is refused and the rule that would allow it.
func (d *Denied) Lacks(what string, rule Rule, err error) {
	d.what = append(d.what, what)
	d.rules = append(d.rules, rule.String())
	if err != nil {
		d.failures = append(d.failures, err)
	}
}

// Enough says that nothing more need be asked: the request is refused, for several reasons, or because the authorizer
// cannot be asked.
func (d *Denied) Enough() bool { return len(d.what) >= maxNamed || len(d.failures) > 0 }

// Unseen notes how many changes of the request nothing was asked about.
func (d *Denied) Unseen(changes int) { d.unseen = changes }

// Error is nil, or one 403 that names every missing rule as far as it was asked for.
func (d *Denied) Error(a admission.Attributes) error {
	if len(d.what) == 0 {
		return nil
	}
	message := fmt.Sprintf("user %q cannot %s: this needs the RBAC rule %s",
		d.who.GetName(), strings.Join(d.what, " or "), strings.Join(d.rules, " and "))
	if d.unseen > 0 {
		message += fmt.Sprintf("; %d more changes of this request were not checked", d.unseen)
	}
	if len(d.failures) > 0 {
		message += fmt.Sprintf(" (%v)", errors.Join(d.failures...))
	}
	return admission.NewForbidden(a, errors.New(message))
}
