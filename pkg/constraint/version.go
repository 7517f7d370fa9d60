// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"cmp"
	"slices"
	"strings"
)

// infinity is above every version.
const infinity = "INFINITY"

// version is a parsed version. Numbers stay text: they may have any length.
type version struct {
	infinite bool
	// numbers are without leading zeros.
	numbers [3]string
	// pre are the identifiers of a prerelease, if it is one.
	pre []string
}

// parseVersion returns nil if text is not a version: one to three numbers, with optional leading zeros, and what Semantic Versioning allows after
// that: a prerelease, and a build, which is ignored.
func parseVersion(text string) *version {
	if text == infinity {
		return &version{infinite: true}
	}
	text, build, hasBuild := strings.Cut(text, "+")
	if hasBuild && !identifiers(build) {
		return nil
	}
	release, pre, hasPre := strings.Cut(text, "-")
	if hasPre && !identifiers(pre) {
		return nil
	}
	fields := strings.Split(release, ".")
	if len(fields) > 3 {
		return nil
	}
	parsed := &version{}
	for i, field := range fields {
		if !digits(field) {
			return nil
		}
		parsed.numbers[i] = strings.TrimLeft(field, "0")
	}
	if hasPre {
		parsed.pre = strings.Split(pre, ".")
	}
	return parsed
}

// strictVersion reports whether a property of type version may have this value: no leading zeros, no prerelease, no build.
func strictVersion(text string) bool {
	if text == infinity {
		return true
	}
	fields := strings.Split(text, ".")
	return len(fields) <= 3 && !slices.ContainsFunc(fields, func(field string) bool {
		return !digits(field) || len(field) > 1 && field[0] == '0'
	})
}

func digits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// identifiers reports whether text consists of identifiers with dots between them.
func identifiers(text string) bool {
	for _, one := range strings.Split(text, ".") {
		if one == "" || strings.ContainsFunc(one, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
		}) {
			return false
		}
	}
	return true
}

// compare returns a number below 0 if v is before other, 0 if they are equal, and above 0 otherwise: the precedence of Semantic Versioning.
func (v *version) compare(other *version) int {
	if v.infinite || other.infinite {
		return boolCompare(v.infinite, other.infinite)
	}
	for i, number := range v.numbers {
		if result := compareNumbers(number, other.numbers[i]); result != 0 {
			return result
		}
	}
	if len(v.pre) == 0 || len(other.pre) == 0 {
		return boolCompare(len(v.pre) == 0, len(other.pre) == 0)
	}
	for i := range min(len(v.pre), len(other.pre)) {
		if result := compareIdentifiers(v.pre[i], other.pre[i]); result != 0 {
			return result
		}
	}
	return cmp.Compare(len(v.pre), len(other.pre))
}

// boolCompare orders false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// compareNumbers compares numbers of any length, without leading zeros.
func compareNumbers(a, b string) int {
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

// compareIdentifiers compares numbers as numbers, other text as text, and orders numbers first.
func compareIdentifiers(a, b string) int {
	switch aDigits, bDigits := digits(a), digits(b); {
	case aDigits && bDigits:
		return compareNumbers(strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0"))
	case aDigits != bDigits:
		return boolCompare(bDigits, aDigits)
	}
	return cmp.Compare(a, b)
}

// versionRange is a range between two versions.
type versionRange struct {
	low, high                 *version
	lowExcluded, highExcluded bool
}

// parseRange parses a range such as [1.0.0,2.0.0), or a single version, which includes itself and all later versions. It returns nil if text is
// neither.
func parseRange(text string) *versionRange {
	if single := parseVersion(text); single != nil {
		return &versionRange{low: single, high: &version{infinite: true}, highExcluded: true}
	}
	if len(text) < 2 || !strings.ContainsRune("[(", rune(text[0])) || !strings.ContainsRune("])", rune(text[len(text)-1])) {
		return nil
	}
	low, high, both := strings.Cut(text[1:len(text)-1], ",")
	between := &versionRange{
		low: parseVersion(low), high: parseVersion(high), lowExcluded: text[0] == '(', highExcluded: text[len(text)-1] == ')',
	}
	if !both || between.low == nil || between.high == nil {
		return nil
	}
	return between
}

func (r *versionRange) contains(v *version) bool {
	low, high := v.compare(r.low), v.compare(r.high)
	return (low > 0 || low == 0 && !r.lowExcluded) && (high < 0 || high == 0 && !r.highExcluded)
}

// and returns the intersection of two ranges.
func (r *versionRange) and(other *versionRange) *versionRange {
	both := *r
	if result := other.low.compare(both.low); result > 0 || result == 0 && other.lowExcluded {
		both.low, both.lowExcluded = other.low, other.lowExcluded
	}
	if result := other.high.compare(both.high); result < 0 || result == 0 && other.highExcluded {
		both.high, both.highExcluded = other.high, other.highExcluded
	}
	return &both
}

// empty reports whether the range contains no version: its ends are in the wrong order.
func (r *versionRange) empty() bool {
	result := r.low.compare(r.high)
	return result > 0 || result == 0 && (r.lowExcluded || r.highExcluded)
}
