// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Listing is one way to list a set.
type Listing struct {
	Name   string
	Client *Client
	Path   func(set string) string

	Latency Samples
	Bytes   int
	CPU     CPUTimes
	// PerRound has the median of each round.
	PerRound []float64
}

// ListInTurns lists in each way, several times in a round. The order changes from round to round.
func ListInTurns(ctx context.Context, e *Env, listings []*Listing, lists, sets int) error {
	for round := range e.Options.Rounds {
		for i := range listings {
			l := listings[(i+round)%len(listings)]
			cpu := e.CPUNow()
			var latency Samples
			for range lists {
				took, err := l.Once(ctx, sets)
				if err != nil {
					return err
				}
				latency = append(latency, took)
			}
			l.CPU.Add(e.CPUNow().Since(cpu))
			l.Latency = append(l.Latency, latency...)
			l.PerRound = append(l.PerRound, Milliseconds(latency.Median()))
		}
		e.Steps.At(round+1, e.Options.Rounds)
	}
	return nil
}

// Check verifies that the response is correct: it has the first clusters, which are those of the first set, and no others.
func (l *Listing) Check(ctx context.Context, count int) error {
	var want []string
	for i := range count {
		want = append(want, ClusterName(i))
	}
	// The clusters that were written last may not be in a cache yet that responds with any version.
	return Eventually(ctx, func() error {
		got, err := l.Client.List(ctx, l.Path(SetName(0)))
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
			return fmt.Errorf("%s: %d clusters, want the first %d", l.Name, len(names), len(want))
		}
		return nil
	})
}

// Once lists a set and returns how long it took.
func (l *Listing) Once(ctx context.Context, sets int) (time.Duration, error) {
	path := l.Path(SetName(rand.IntN(sets)))
	var answer bytes.Buffer
	answer.Grow(2 * l.Bytes)
	begun := time.Now()
	err := l.Client.Get(ctx, path, &answer)
	took := time.Since(begun)
	l.Bytes = answer.Len()
	return took, err
}
