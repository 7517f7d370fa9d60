// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observed records when facts about objects were observed.
package observed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// Exists is a fact of each object that has been observed.
const Exists = "exists"

// Facts records when facts of many objects became true.
type Facts struct {
	mu sync.Mutex
	// facts are the facts of each object, by its name.
	facts map[string]map[string]time.Time
	// lost are the conditions that have been True, and then were not.
	lost []string
}

// NewFacts returns an empty record.
func NewFacts() *Facts { return &Facts{facts: map[string]map[string]time.Time{}} }

// Observe records all facts of an object, and reports whether the object is new.
func (f *Facts) Observe(name string, facts map[string]bool) (isNew bool) {
	now := time.Now()
	facts[Exists] = true
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.facts[name]
	if !known {
		before = map[string]time.Time{}
		f.facts[name] = before
	}
	maps.DeleteFunc(before, func(fact string, _ time.Time) bool {
		if !facts[fact] && strings.HasSuffix(fact, "=True") {
			f.lost = append(f.lost, name+": "+fact)
		}
		return !facts[fact]
	})
	for fact := range facts {
		if _, ok := before[fact]; !ok {
			before[fact] = now
		}
	}
	return !known
}

// Add adds one fact of an object.
func (f *Facts) Add(name, fact string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of, ok := f.facts[name]; ok && of[fact].IsZero() {
		of[fact] = time.Now()
	}
}

// Count returns how many objects have all the facts.
func (f *Facts) Count(facts ...string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if !slices.ContainsFunc(facts, func(fact string) bool { return of[fact].IsZero() }) {
			n++
		}
	}
	return n
}

// Await waits until n objects have all the facts. It fails after the time of a stall without any progress.
func (f *Facts) Await(ctx context.Context, steps *kit.Progress, n int, facts ...string) error {
	const stall = 3 * time.Minute
	best, since := -1, time.Now()
	for {
		have := f.Count(facts...)
		if have == n {
			return nil
		}
		if have > best {
			best, since = have, time.Now()
		}
		if time.Since(since) > stall {
			return fmt.Errorf("%d of %d have %v, and none more since %s", have, n, facts, stall)
		}
		steps.At(have, n)
		if err := kit.Sleep(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// Since returns how long after one fact another became true, for each object.
func (f *Facts) Since(from, to string) (took kit.Samples) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if a, b := of[from], of[to]; !a.IsZero() && !b.IsZero() {
			took = append(took, b.Sub(a))
		}
	}
	return took
}

// Times returns when a fact became true, in order.
func (f *Facts) Times(fact string) (times []time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if at := of[fact]; !at.IsZero() {
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// TakeLost returns the conditions that were lost, and resets them.
func (f *Facts) TakeLost() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := f.lost
	f.lost = nil
	return lost
}
