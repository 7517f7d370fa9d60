// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import "context"

// The times when memory is measured, after it was measured empty.
const (
	memoryFilled    = "filled"
	memoryRestarted = "restarted"
)

// measureMemory reports the memory of the fleet: the difference to that of the empty servers, which must be measured first.
func (c *comparison) measureMemory(ctx context.Context, when string) error {
	if !c.Options.Wants("c") {
		return nil
	}
	now, err := c.SettledMemory(ctx, when)
	if err != nil {
		return err
	}
	if c.empty == nil {
		c.empty = now
		return nil
	}
	c.results.addMemory(when, c.empty, now, c.Options.Fleet)
	return nil
}
