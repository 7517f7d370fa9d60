// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import "github.com/clusterhub/clusterhub/pkg/kit"

// Statements returns the statements of all controllers of hub-operator, whether flags disable them or not.
func (o *Options) Statements() []kit.Controller { return o.all() }
