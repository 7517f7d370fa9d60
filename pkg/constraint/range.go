// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"strconv"
)

// VersionRange is a range of versions. It is immutable, and safe for concurrent use.
type VersionRange struct {
	between *versionRange
}

// ParseVersionRange parses a range of versions outside of an expression: [1.0.0,2.0.0), where a square bracket includes the version beside it and a
// round one excludes it; INFINITY as the end is above all versions. A single version is the range from there on. An empty range is an error.
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

// Contains reports whether a version is in the range. It is false for an invalid version. A nil range contains all versions.
func (r *VersionRange) Contains(version string) bool {
	parsed := parseVersion(version)
	if parsed == nil || parsed.infinite {
		return false
	}
	return r == nil || r.between.contains(parsed)
}
