// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"os"
	"time"
)

// untilParentEnds returns a context that ends with the process that has started this one: a server with the user's credentials must not remain when
// the terminal or the script has ended. Operating systems do not notify other processes than the parent of an exit, so it polls.
func untilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		defer cancel()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if os.Getppid() != parent {
					return
				}
			}
		}
	}()
	return ctx, cancel
}
