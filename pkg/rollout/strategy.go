// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Type is how clusters come one after the other.
type Type string

const (
	// All are written at once.
	All Type = "All"
	// Progressive keeps so many at a time in progress.
	Progressive Type = "Progressive"
	// PerGroup writes one decision group after the other.
	PerGroup Type = "ProgressivePerGroup"
)

// Strategy is what a user asks for.
type Strategy struct {
	// Type is All if it is empty.
	Type Type
	// MinSuccessTime is how long a cluster has to be a success before others follow. All ignores it.
	MinSuccessTime time.Duration
	// ProgressDeadline is how long a cluster may take before it counts as a failure; for ever, if it is 0.
	ProgressDeadline time.Duration
	// MaxFailures is how many clusters may fail before no more follow: of all of them, or of a group. All ignores it.
	MaxFailures intstr.IntOrString
	// MaxConcurrency is how many may be in progress at a time, for Progressive; all, if it is 0 or below.
	MaxConcurrency intstr.IntOrString
	// Mandatory are the groups that come first, in this order, and of which none may fail.
	Mandatory []MandatoryGroup
}

// MandatoryGroup is one by its name, or by its index if it has no name.
type MandatoryGroup struct {
	Name  string
	Index int
}

func (g MandatoryGroup) String() string {
	if g.Name != "" {
		return strconv.Quote(g.Name)
	}
	return strconv.Itoa(g.Index)
}

// none is how the API says that there is no deadline.
const none = "None"

// ParseDeadline reads a progressDeadline of the API: a duration, or none, which is 0.
func ParseDeadline(text string) (time.Duration, error) {
	if text == "" || text == none {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("progressDeadline must be a number with h, m or s, such as 30m, or %s, not %q", none, text)
	}
	return d, nil
}

// ParseBound reads a number, or a percentage of a total, which is rounded up. It is at least 0 and at most the total.
func ParseBound(field string, bound intstr.IntOrString, total int) (int, error) {
	if bound.Type == intstr.Int {
		return min(max(int(bound.IntVal), 0), total), nil
	}
	digits, isPercent := strings.CutSuffix(bound.StrVal, "%")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%s must be a number such as 3, or a percentage such as 10%%, not %q", field, bound.StrVal)
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	switch {
	case err != nil: // too large a number
		return total, nil
	case isPercent && n < 100:
		return int((n*int64(total) + 99) / 100), nil
	case isPercent:
		return total, nil
	}
	return min(int(n), total), nil
}

// Validate says what of a strategy cannot be followed.
func (s *Strategy) Validate() error {
	switch s.Type {
	case All, "", Progressive, PerGroup:
	default:
		return fmt.Errorf("rolloutStrategy.type must be %s, %s or %s, not %q", All, Progressive, PerGroup, s.Type)
	}
	if _, err := ParseBound("maxFailures", s.MaxFailures, 1); err != nil {
		return err
	}
	_, err := ParseBound("maxConcurrency", s.MaxConcurrency, 1)
	return err
}

// concurrency is how many of so many clusters may be in progress.
func (s *Strategy) concurrency(total int) int {
	if s.Type != Progressive {
		return total
	}
	n, err := ParseBound("maxConcurrency", s.MaxConcurrency, total)
	switch {
	case err != nil:
		return 0
	case n == 0:
		return total
	}
	return n
}

// failures are how many of so many clusters may fail.
func (s *Strategy) failures(total int) int {
	n, err := ParseBound("maxFailures", s.MaxFailures, total)
	if err != nil {
		return 0
	}
	return n
}

// soak is MinSuccessTime, where it counts.
func (s *Strategy) soak() time.Duration {
	if s.Type == Progressive || s.Type == PerGroup {
		return max(s.MinSuccessTime, 0)
	}
	return 0
}
