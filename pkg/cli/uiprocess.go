// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"time"
)

// untilParentEnds ends with the process that has started this one: a server with the user's credentials is not to stay behind when the
// terminal or the script is gone. Systems tell only children of it, so it looks.
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
