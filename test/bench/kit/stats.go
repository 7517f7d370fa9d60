// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"math"
	"slices"
	"time"
)

// Samples are measured times.
type Samples []time.Duration

// Quantile returns the quantile of the samples by nearest rank, or 0 without samples.
func (s Samples) Quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median returns the median.
func (s Samples) Median() time.Duration { return s.Quantile(0.5) }

// P99 returns the 99th percentile.
func (s Samples) P99() time.Duration { return s.Quantile(0.99) }

// Median returns the median, or 0 without values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Milliseconds returns a duration in milliseconds, with three digits.
func Milliseconds(d time.Duration) float64 { return Round(float64(d)/float64(time.Millisecond), 3) }

// Seconds returns a duration in seconds, with three digits.
func Seconds(d time.Duration) float64 { return Round(d.Seconds(), 3) }

// Round rounds to a number of digits.
func Round(v float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(v*scale) / scale
}

// PairedRatio returns the median of the ratios of values that were measured in the same rounds: what slows a round down slows both.
func PairedRatio(a, b []float64) float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, Ratio(a[i], b[i]))
	}
	return Median(ratios)
}

// Ratio returns a/b, or 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
