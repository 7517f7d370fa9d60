// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"errors"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Guard is what the plugins share that ask for a right: none of them starts without somebody to ask.
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
