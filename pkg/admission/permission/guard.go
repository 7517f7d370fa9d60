// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Guard is what a plugin embeds that asks for rights. No such plugin starts without an authorizer.
type Guard struct {
	*admission.Handler
	Authorizer authorizer.Authorizer
	name       string
}

var (
	_ admission.InitializationValidator = &Guard{}
	_ initializer.WantsAuthorizer       = &Guard{}
)

// NewGuard returns the guard of the plugin with this name, for these operations, to be given an authorizer.
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

// Require is nil for a user who holds one of the rules, which are spellings of one right. Otherwise it is a 403 that says what the
// user cannot do, and names the first rule.
func (g *Guard) Require(ctx context.Context, a admission.Attributes, what string, rules ...Rule) error {
	d := g.Decide(a)
	if held, err := Holds(ctx, g.Authorizer, a.GetUserInfo(), rules...); held != nil {
		d.Uses(*held)
	} else {
		d.Lacks(what, rules[0], err)
	}
	return d.End(ctx)
}

// Excused says whether the user holds one of the rules, which are spellings of one right: that to be held by a bound no more. The
// error says why the authorizer could not be asked. Who does not hold it lacks nothing, and is refused for the bound.
func (g *Guard) Excused(ctx context.Context, a admission.Attributes, rules ...Rule) (bool, error) {
	held, err := Holds(ctx, g.Authorizer, a.GetUserInfo(), rules...)
	if held == nil {
		return false, err
	}
	d := g.Decide(a)
	d.Uses(*held)
	return true, d.End(ctx)
}
