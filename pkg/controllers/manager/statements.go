// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/clusterhub/clusterhub/pkg/controllers/kit"

// Statements are what all controllers that there are state of themselves, whether flags leave them out or not.
func (o *Options) Statements() (all []kit.Controller) {
	for _, entry := range (&controllers{Options: o}).all() {
		all = append(all, entry.Controller)
	}
	return all
}
