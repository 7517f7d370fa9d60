// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// listing is one way to list a set.
type listing struct {
	name   string
	client *client
	path   func(set string) string

	latency samples
	bytes   int
	cpu     cpuTimes
	// perRound has the median of each round.
	perRound []float64
}

// listInTurns lists in each way, several times in a round. The order changes from round to round.
func listInTurns(ctx context.Context, e *env, listings []*listing, lists, sets int) error {
	for round := range e.options.rounds {
		for i := range listings {
			l := listings[(i+round)%len(listings)]
			cpu := e.cpuNow()
			var latency samples
			for range lists {
				took, err := l.once(ctx, sets)
				if err != nil {
					return err
				}
				latency = append(latency, took)
			}
			l.cpu.add(e.cpuNow().since(cpu))
			l.latency = append(l.latency, latency...)
			l.perRound = append(l.perRound, milliseconds(latency.median()))
		}
		e.steps.at(round+1, e.options.rounds)
	}
	return nil
}

// check verifies that the response is correct: it has the first clusters, which are those of the first set, and no others.
func (l *listing) check(ctx context.Context, count int) error {
	var want []string
	for i := range count {
		want = append(want, clusterName(i))
	}
	// The clusters that were written last may not be in a cache yet that responds with any version.
	return eventually(ctx, func() error {
		got, err := l.client.list(ctx, l.path(setName(0)))
		if err != nil {
			return err
		}
		var names []string
		for _, item := range got.Items {
			name, _, _ := strings.Cut(item.Metadata.Name, ".")
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			return fmt.Errorf("%s: %d clusters, want the first %d", l.name, len(names), len(want))
		}
		return nil
	})
}

// once lists a set and returns how long it took.
func (l *listing) once(ctx context.Context, sets int) (time.Duration, error) {
	path := l.path(setName(rand.IntN(sets)))
	var answer bytes.Buffer
	answer.Grow(2 * l.bytes)
	begun := time.Now()
	err := l.client.get(ctx, path, &answer)
	took := time.Since(begun)
	l.bytes = answer.Len()
	return took, err
}
