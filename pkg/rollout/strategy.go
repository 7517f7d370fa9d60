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

// Type is the order in which clusters are written.
type Type string

const (
	// All writes all clusters at once.
	All Type = "All"
	// Progressive writes so many clusters that a limited number is in progress.
	Progressive Type = "Progressive"
	// PerGroup writes one decision group after the other.
	PerGroup Type = "ProgressivePerGroup"
)

// Strategy is the rollout strategy of a user.
type Strategy struct {
	// Type defaults to All.
	Type Type
	// MinSuccessTime is the time for which a cluster must succeed before others follow. All ignores it.
	MinSuccessTime time.Duration
	// ProgressDeadline is the time after which a cluster that has not succeeded counts as a failure; 0 is never.
	ProgressDeadline time.Duration
	// MaxFailures is the number of clusters that may fail before no more follow: of all of them, or of a group. All ignores it.
	MaxFailures intstr.IntOrString
	// MaxConcurrency is the number of clusters that may be in progress at a time, for Progressive; 0 or less is all.
	MaxConcurrency intstr.IntOrString
	// Mandatory are the groups that come first, in this order, and of which no cluster may fail.
	Mandatory []MandatoryGroup
}

// MandatoryGroup identifies a group by its name, or by its index if it has no name.
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

// none is the value of the API for no deadline.
const none = "None"

// ParseDeadline parses a progressDeadline of the API: a duration, or none, which is 0.
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

// ParseBound parses a number, or a percentage of a total, which is rounded up. The result is at least 0 and at most the total.
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
	case err != nil: // the number is too large
		return total, nil
	case isPercent && n < 100:
		return int((n*int64(total) + 99) / 100), nil
	case isPercent:
		return total, nil
	}
	return min(int(n), total), nil
}

// Validate returns an error if a strategy is invalid.
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

// concurrency returns how many of a number of clusters may be in progress.
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

// failures returns how many of a number of clusters may fail.
func (s *Strategy) failures(total int) int {
	n, err := ParseBound("maxFailures", s.MaxFailures, total)
	if err != nil {
		return 0
	}
	return n
}

// soak returns MinSuccessTime if the type uses it, and 0 otherwise.
func (s *Strategy) soak() time.Duration {
	if s.Type == Progressive || s.Type == PerGroup {
		return max(s.MinSuccessTime, 0)
	}
	return 0
}
