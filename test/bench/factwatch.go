// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// factExists is a fact of each object that has been observed.
const factExists = "exists"

// factWatch records when facts of many objects became true.
type factWatch struct {
	mu sync.Mutex
	// facts are the facts of each object, by its name.
	facts map[string]map[string]time.Time
	// lost are the conditions that have been True, and then were not.
	lost []string
}

func newFactWatch() *factWatch { return &factWatch{facts: map[string]map[string]time.Time{}} }

// see records all facts of an object, and reports whether the object is new.
func (f *factWatch) see(name string, facts map[string]bool) (isNew bool) {
	now := time.Now()
	facts[factExists] = true
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

// add adds one fact of an object.
func (f *factWatch) add(name, fact string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of, ok := f.facts[name]; ok && of[fact].IsZero() {
		of[fact] = time.Now()
	}
}

// count returns how many objects have all the facts.
func (f *factWatch) count(facts ...string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if !slices.ContainsFunc(facts, func(fact string) bool { return of[fact].IsZero() }) {
			n++
		}
	}
	return n
}

// await waits until n objects have all the facts. It fails after the time of a stall without any progress.
func (f *factWatch) await(ctx context.Context, steps *progress, n int, facts ...string) error {
	const stall = 3 * time.Minute
	best, since := -1, time.Now()
	for {
		have := f.count(facts...)
		if have == n {
			return nil
		}
		if have > best {
			best, since = have, time.Now()
		}
		if time.Since(since) > stall {
			return fmt.Errorf("%d of %d have %v, and none more since %s", have, n, facts, stall)
		}
		steps.at(have, n)
		if err := sleep(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// since returns how long after one fact another became true, for each object.
func (f *factWatch) since(from, to string) (took samples) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.facts {
		if a, b := of[from], of[to]; !a.IsZero() && !b.IsZero() {
			took = append(took, b.Sub(a))
		}
	}
	return took
}

// times returns when a fact became true, in order.
func (f *factWatch) times(fact string) (times []time.Time) {
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

// losses returns the conditions that were lost, and resets them.
func (f *factWatch) losses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := f.lost
	f.lost = nil
	return lost
}
