// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/clusterhub/clusterhub/pkg/kit"

// Statements returns the descriptions of all controllers, whether flags disable them or not.
func (o *Options) Statements() (all []kit.Controller) {
	for _, entry := range (&controllers{Options: o}).all() {
		all = append(all, entry.Controller)
	}
	return all
}
