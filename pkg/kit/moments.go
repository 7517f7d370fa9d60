// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Moments are points in time of many objects, such as the ends of certificates. They are stored as numbers of objects in steps of time: a change
// updates two of them, and the cost of a histogram depends on the steps with objects.
type Moments struct {
	step time.Duration

	mu     sync.Mutex
	counts map[int64]int
}

// NewMoments returns empty Moments. step is their resolution.
func NewMoments(step time.Duration) *Moments {
	return &Moments{step: step, counts: map[int64]int{}}
}

// Move removes one moment and adds another; the zero time is ignored.
func (m *Moments) Move(from, to time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !from.IsZero() {
		at := m.stepOf(from)
		m.counts[at]--
		if m.counts[at] <= 0 {
			delete(m.counts, at)
		}
	}
	if !to.IsZero() {
		m.counts[m.stepOf(to)]++
	}
}

func (m *Moments) stepOf(t time.Time) int64 { return t.Unix() / int64(m.step/time.Second) }

func (m *Moments) timeOf(at int64) time.Time { return time.Unix(at*int64(m.step/time.Second), 0) }

// First returns the earliest moment, or zero.
func (m *Moments) First() (first time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := range m.counts {
		if t := m.timeOf(at); first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return first
}

// Histogram returns a histogram of the seconds that the function returns for each moment.
func (m *Moments) Histogram(desc *prometheus.Desc, bounds []float64, seconds func(time.Time) float64) prometheus.Metric {
	m.mu.Lock()
	defer m.mu.Unlock()
	var count uint64
	var sum float64
	buckets := make(map[float64]uint64, len(bounds))
	for _, bound := range bounds {
		buckets[bound] = 0
	}
	for at, n := range m.counts {
		s := seconds(m.timeOf(at))
		count += uint64(n) //nolint:gosec // above 0
		sum += s * float64(n)
		for _, bound := range bounds {
			if s <= bound {
				buckets[bound] += uint64(n) //nolint:gosec // above 0
			}
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, sum, buckets)
}
