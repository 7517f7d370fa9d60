// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import "github.com/clusterhub/clusterhub/pkg/controllers/kit"

// Statements are what all controllers of hub-operator state of themselves, whether flags leave them out or not.
func (o *Options) Statements() []kit.Controller { return o.all() }
