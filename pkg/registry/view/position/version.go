// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object's resource version is an etcd revision and a position within it, packed in one integer. One revision (a change of a set) may move many
// members; the positions number their events, so that a client that reconnects in the middle of them gets the rest. It is the same on every replica,
// because the order of the events is.
const (
	positionBits = 20
	// End is the position of the whole revision, such as that of a list, and of the objects after a revision.
	End = 1<<positionBits - 1
)

// Version packs a revision and a position within it.
func Version(revision uint64, position int) uint64 {
	return revision<<positionBits | uint64(position)
}

// RevisionOf returns the revision of a version.
func RevisionOf(version uint64) uint64 { return version >> positionBits }

// CheckBatch returns an error if the events of one revision cannot be numbered.
func CheckBatch(n int) error {
	if n >= End {
		return fmt.Errorf("one change moved %d objects, more than the %d that a revision can number", n, End-1)
	}
	return nil
}

// SetVersion writes a version into an object.
func SetVersion(object metav1.Object, version uint64) {
	object.SetResourceVersion(strconv.FormatUint(version, 10))
}
