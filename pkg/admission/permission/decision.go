// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// maxNamed is the largest number of missing permissions in an error: enough to see what is wrong. Each needs calls of the authorizer.
const maxNamed = 4

// Decision is the decision of a plugin on one request: the necessary rules that its user has, and those that the user lacks. It is not recorded
// before End is called.
type Decision struct {
	plugin     string
	attributes admission.Attributes

	held     []rbac.Permission
	what     []string
	lacking  []rbac.Permission
	failures []error
	unseen   int
}

// Decide starts the decision on a request.
func (g *Guard) Decide(a admission.Attributes) *Decision {
	return &Decision{plugin: g.name, attributes: a}
}

// Uses records a rule that the user has, and that allows a part of the request.
func (d *Decision) Uses(rule rbac.Permission) {
	if !slices.Contains(d.held, rule) {
		d.held = append(d.held, rule)
	}
}

// Lacks records what is rejected, and the rule that would allow it.
func (d *Decision) Lacks(what string, rule rbac.Permission, err error) {
	d.what = append(d.what, what)
	d.lacking = append(d.lacking, rule)
	if err != nil {
		d.failures = append(d.failures, err)
	}
}

// Enough reports whether no more checks are needed: the request is rejected, for several reasons, or because the authorizer failed.
func (d *Decision) Enough() bool { return len(d.what) >= maxNamed || len(d.failures) > 0 }

// Unseen records the number of changes of the request that were not checked.
func (d *Decision) Unseen(changes int) { d.unseen = changes }

// End records the decision in audit annotations and metrics. It returns nil, or one 403 that names every missing rule that was checked.
func (d *Decision) End(ctx context.Context) error {
	if len(d.what) == 0 {
		if len(d.held) > 0 {
			annotate(ctx, d.plugin, allowed, d.held)
		}
		return nil
	}
	annotate(ctx, d.plugin, refused, d.lacking)
	count(d.plugin, d.lacking)
	rules := make([]string, len(d.lacking))
	for i, r := range d.lacking {
		rules[i] = r.String()
	}
	message := fmt.Sprintf("user %q cannot %s: this needs the RBAC rule %s",
		d.attributes.GetUserInfo().GetName(), strings.Join(d.what, " or "), strings.Join(rules, " and "))
	if d.unseen > 0 {
		message += fmt.Sprintf("; %d more changes of this request were not checked", d.unseen)
	}
	if len(d.failures) > 0 {
		message += fmt.Sprintf(" (%v)", errors.Join(d.failures...))
	}
	return admission.NewForbidden(d.attributes, errors.New(message))
}
