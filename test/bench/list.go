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

// Names of the listings in the report.
const (
	listMembersDirect = "members, direct"
	listMembersFront  = "members, through the front"
	listLabelDirect   = "clusters by label, direct"
	listLabelFront    = "clusters by label, through the front"
	listPeer          = "peer: custom resources by label"
)

// lists measures all ways to list a set, in turns. Bodies are read completely and not decoded, in JSON for all. Bodies over 128 KiB are compressed,
// as for all clients by default.
func (b *bench) lists(ctx context.Context, fleet int, last bool) error {
	b.steps.step("Listing one set of %d at %d clusters, %d rounds", setSize, fleet, b.options.rounds)
	listings, err := b.listings()
	if err != nil {
		return err
	}
	sets := fleet / setSize
	for _, l := range listings {
		if err := l.check(ctx, setSize); err != nil {
			return err
		}
		for range 5 {
			if _, err := l.once(ctx, sets); err != nil {
				return err
			}
		}
	}
	if err := b.inTurns(ctx, listings, b.options.lists, sets); err != nil {
		return err
	}
	b.report.addLists(fleet, listings)
	if last && b.options.profileDir != "" {
		return b.profileLists(ctx, listings, sets)
	}
	return nil
}

// inTurns lists in each way, several times in a round. The order changes from round to round.
func (b *bench) inTurns(ctx context.Context, listings []*listing, lists, sets int) error {
	for round := range b.options.rounds {
		for i := range listings {
			l := listings[(i+round)%len(listings)]
			cpu := b.cpuNow()
			var latency samples
			for range lists {
				took, err := l.once(ctx, sets)
				if err != nil {
					return err
				}
				latency = append(latency, took)
			}
			l.cpu.add(b.cpuNow().since(cpu))
			l.latency = append(l.latency, latency...)
			l.perRound = append(l.perRound, milliseconds(latency.median()))
		}
		b.steps.at(round+1, b.options.rounds)
	}
	return nil
}

func (b *bench) listings() ([]*listing, error) {
	front, err := newClient(b.front())
	if err != nil {
		return nil, err
	}
	direct, err := newClient(b.direct())
	if err != nil {
		return nil, err
	}
	version := ""
	if b.options.resourceVersion != "" {
		version = "&resourceVersion=" + b.options.resourceVersion
	}
	members := func(set string) string { return ourMembers + "?" + bySetField(set) + version }
	label := func(set string) string { return ourClusters + "?" + bySetLabel(set) + version }
	peers := func(set string) string { return peerClusters + "?" + bySetLabel(set) + version }
	return []*listing{
		{name: listMembersDirect, client: direct, path: members},
		{name: listMembersFront, client: front, path: members},
		{name: listLabelDirect, client: direct, path: label},
		{name: listLabelFront, client: front, path: label},
		{name: listPeer, client: front, path: peers},
	}, nil
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

// profileLists profiles hub-apiserver during lists, apart from the measurements.
func (b *bench) profileLists(ctx context.Context, listings []*listing, sets int) error {
	const seconds = 10
	for _, l := range listings {
		if l.name != listMembersDirect && l.name != listLabelDirect {
			continue
		}
		b.steps.step("Profiling lists of %s", l.name)
		name := "list-" + strings.ReplaceAll(strings.ReplaceAll(l.name, ",", ""), " ", "-")
		profiled := b.cpuProfile(ctx, name, seconds)
		for begun := time.Now(); time.Since(begun) < seconds*time.Second; {
			if _, err := l.once(ctx, sets); err != nil {
				return err
			}
		}
		profiled()
	}
	return nil
}
