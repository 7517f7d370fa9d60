// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestCommand_DocumentedProviders(t *testing.T) {
	var names []string
	for _, cmd := range newCommand().Commands() {
		names = append(names, cmd.Name())
	}
	slices.Sort(names)
	if want := []string{"kubeconfig", "local"}; !slices.Equal(names, want) {
		t.Errorf("the commands are %q, want %q", names, want)
	}
}
