// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import "fmt"

// A member's resource version is an etcd revision and a position within it, packed in one integer. One revision (a
// change of a set) may move many members; the positions number their events, so that a client that reconnects in the
// middle of them gets the rest. It is the same on every replica, because the order of the events is.
const (
	positionBits = 20
	// maxPosition stands for the whole revision: it is the version of a list, and of what a revision left behind.
	maxPosition = 1<<positionBits - 1
)

func pack(revision uint64, position int) uint64 {
	return revision<<positionBits | uint64(position)
}

func revisionOf(version uint64) uint64 { return version >> positionBits }

// checkBatch tells whether the events of one revision can be numbered.
func checkBatch(n int) error {
	if n >= maxPosition {
		return fmt.Errorf("one change moved %d members, more than the %d that a revision can number", n, maxPosition-1)
	}
	return nil
}
