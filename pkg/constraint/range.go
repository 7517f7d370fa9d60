// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"strconv"
)

// VersionRange is what is between two versions. It never changes, and can be used by several goroutines at once.
type VersionRange struct {
	between *versionRange
}

// ParseVersionRange reads a range of versions that is written by itself, and not in an expression: [1.0.0,2.0.0), where a square bracket
// has the version beside it in the range and a round one has not; INFINITY as the end is above all versions. A single version is the range
// from there on. A range in which there is no version is refused.
func ParseVersionRange(text string) (*VersionRange, error) {
	if len(text) > MaxRangeLength {
		return nil, fmt.Errorf("expected a range of versions of at most %d bytes, found %d bytes", MaxRangeLength, len(text))
	}
	between := parseRange(text)
	if between == nil {
		return nil, fmt.Errorf("expected a range of versions without spaces, such as [1.0.0,2.0.0) or [1.0.0,INFINITY), or a single version, found %s",
			strconv.Quote(short(text)))
	}
	if between.empty() {
		return nil, fmt.Errorf("expected a range with a version in it, with the lower version first, found %s", strconv.Quote(short(text)))
	}
	return &VersionRange{between}, nil
}

// Contains says whether a version is in the range. It is false for a text that is no version. No range (nil) has all versions in it.
func (r *VersionRange) Contains(version string) bool {
	parsed := parseVersion(version)
	if parsed == nil || parsed.infinite {
		return false
	}
	return r == nil || r.between.contains(parsed)
}
