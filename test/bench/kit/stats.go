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

func (s Samples) Median() time.Duration { return s.Quantile(0.5) }
func (s Samples) P99() time.Duration    { return s.Quantile(0.99) }

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

func Milliseconds(d time.Duration) float64 { return Round(float64(d)/float64(time.Millisecond), 3) }

func Seconds(d time.Duration) float64 { return Round(d.Seconds(), 3) }

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

func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
