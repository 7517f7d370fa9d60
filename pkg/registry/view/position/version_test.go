// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"math"
	"testing"
)

func TestVersion_OrderedByRevisionAndPosition(t *testing.T) {
	last := uint64(0)
	for _, revision := range []uint64{1, 2, 3, 1 << 20, 1<<43 - 1} {
		for _, position := range []int{0, 1, 2, End - 1, End} {
			v := Version(revision, position)
			if v <= last {
				t.Errorf("(%d, %d) is %d, no more than the one before, %d", revision, position, v, last)
			}
			if got := RevisionOf(v); got != revision {
				t.Errorf("(%d, %d) is of the revision %d", revision, position, got)
			}
			// Continue tokens have it as a signed integer.
			if v > math.MaxInt64 {
				t.Errorf("(%d, %d) is %d, more than a continue token can carry", revision, position, v)
			}
			last = v
		}
	}
	if Version(7, 0)-1 != Version(6, End) {
		t.Error("what comes before a revision is not the end of the one before")
	}
}

// TestVersion_RejectsTooLargeBatch: no event has the position of the whole revision.
func TestVersion_RejectsTooLargeBatch(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 1: true, End - 1: true, End: false, End + 1: false} {
		if err := CheckBatch(n); (err == nil) != ok {
			t.Errorf("%d events: %v", n, err)
		}
	}
}
