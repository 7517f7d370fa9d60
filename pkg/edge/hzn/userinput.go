// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hzn

import (
	"errors"
	"slices"
)

// ErrUserInput describes what to do with the values of variables that hzn has in a file of their own.
var ErrUserInput = errors.New("this is a file of user input, which hzn takes for one node: the hub has the values of variables in policies and patterns. " +
	"Put them into userInput of the deployment policy or pattern, and leave this file out")

// isUserInput reports whether a file sets variables of services: in the old form by global and services, in which a service has variables and no
// versions.
func isUserInput(top map[string]any) bool {
	if _, ok := lookup(top, "global"); ok {
		return true
	}
	key, _ := lookup(top, "services")
	services, _ := top[key].([]any)
	return slices.ContainsFunc(services, func(entry any) bool {
		service, _ := entry.(map[string]any)
		_, variables := lookup(service, "variables")
		_, versions := lookup(service, "serviceVersions")
		return variables && !versions
	}) || isServiceInputs(services)
}

// isServiceInputs reports whether a list is the new form of a file of user input.
func isServiceInputs(list []any) bool {
	return slices.ContainsFunc(list, func(entry any) bool {
		service, _ := entry.(map[string]any)
		_, inputs := lookup(service, "inputs")
		return inputs
	})
}
