// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// Guard is embedded in plugins that check permissions. No such plugin starts without an authorizer.
type Guard struct {
	*admission.Handler
	Authorizer authorizer.Authorizer
	name       string
}

var (
	_ admission.InitializationValidator = &Guard{}
	_ initializer.WantsAuthorizer       = &Guard{}
)

// NewGuard returns the guard of the plugin with this name, for these operations. It needs an authorizer.
func NewGuard(plugin string, operations ...admission.Operation) Guard {
	return Guard{Handler: admission.NewHandler(operations...), name: plugin}
}

// SetAuthorizer implements initializer.WantsAuthorizer.
func (g *Guard) SetAuthorizer(a authorizer.Authorizer) { g.Authorizer = a }

// ValidateInitialization implements admission.InitializationValidator.
func (g *Guard) ValidateInitialization() error {
	if g.Authorizer == nil {
		return errors.New(g.name + " needs an authorizer")
	}
	return nil
}

// Require returns nil for a user who has one of the rules, which are spellings of one permission. Otherwise it returns a 403 that says what the user
// cannot do, and names the first rule.
func (g *Guard) Require(ctx context.Context, a admission.Attributes, what string, rules ...rbac.Permission) error {
	d := g.Decide(a)
	if held, err := Holds(ctx, g.Authorizer, a.GetUserInfo(), rules...); held != nil {
		d.Uses(*held)
	} else {
		d.Lacks(what, rules[0], err)
	}
	return d.End(ctx)
}

// Excused reports whether the user has one of the rules, which are spellings of one permission: to exceed a bound. The error reports that the
// authorizer failed. A user without the permission is rejected because of the bound, so the decision records no missing permission.
func (g *Guard) Excused(ctx context.Context, a admission.Attributes, rules ...rbac.Permission) (bool, error) {
	held, err := Holds(ctx, g.Authorizer, a.GetUserInfo(), rules...)
	if held == nil {
		return false, err
	}
	d := g.Decide(a)
	d.Uses(*held)
	return true, d.End(ctx)
}
