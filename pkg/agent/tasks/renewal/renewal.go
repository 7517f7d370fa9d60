// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package renewal implements the task that renews the agent's identity in time.
package renewal

import (
	"context"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
)

// New returns the task, with the rights that the identity's driver declares. It ends the session when a new identity exists, or the current one can
// no longer be used.
func New(own identity.Identity, needs rights.Rights) task.Task {
	return task.Task{
		Name:   "renewing the identity",
		Rights: needs,
		Run: func(ctx context.Context, s task.Session) error {
			return task.Over(own.Maintain(ctx, s.Hub))
		},
	}
}
