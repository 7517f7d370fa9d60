// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// watchConnections is the number of HTTP/2 connections that the watches share.
const watchConnections = 8

// watching is one way to watch sets.
type watching struct {
	name string
	// kind is the kind whose labels are written.
	kind kind
	// list and watch return the paths for a set.
	list, watch func(set string) string
	config      *rest.Config

	events, writes samples
	lost, moved    int
}

// Names of the ways to watch in the report.
const (
	watchMembersFront  = "members, through the front"
	watchMembersDirect = "members, direct"
	watchPeer          = "peer: custom resources by label"
)

// arrival is an event at a watcher.
type arrival struct {
	set, name string
	at        time.Time
	err       error
}

// watches measures the time from the response to a write of a label until the events at all watches of the set that the cluster leaves or of the one
// that it joins.
func watches(ctx context.Context, e *env, r *clustersResults) error {
	members := func(set string) string { return ourMembers + "?" + bySetField(set) }
	peers := func(set string) string { return peerClusters + "?" + bySetLabel(set) }
	all := []*watching{
		{name: watchMembersFront, kind: ours, list: members, watch: members, config: e.front()},
		{name: watchMembersDirect, kind: ours, list: members, watch: members, config: e.direct()},
		{name: watchPeer, kind: peer, list: peers, watch: peers, config: e.front()},
	}
	sets := map[string][]string{ours.name: homes(e.options.fleet), peer.name: homes(e.options.fleet)}
	for _, w := range all {
		if err := watchOne(ctx, e, w, sets[w.kind.name]); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	r.addWatches(e.options.watchers, all)
	return nil
}

// homes returns the sets of the clusters, by number.
func homes(fleet int) []string {
	homes := make([]string, fleet)
	for i := range homes {
		homes[i] = setOf(i)
	}
	return homes
}

func watchOne(ctx context.Context, e *env, w *watching, homes []string) error {
	e.steps.step("Opening %d watches of %s", e.options.watchers, w.name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sets := min(len(homes)/setSize, e.options.watchers)
	arrivals := make(chan arrival, 10*e.options.watchers)
	watchers, err := openWatches(ctx, e, w, sets, arrivals)
	if err != nil {
		return err
	}
	writer, err := newClient(e.front())
	if err != nil {
		return err
	}
	e.steps.step("Writing the labels of %d clusters", e.options.moves)
	if w.name == watchMembersFront {
		defer e.cpuProfile(ctx, "watch", 5)()
	}
	// The first writes are not counted: they fill the caches of permissions.
	const warm = 5
	for move := range e.options.moves + warm {
		i := rand.IntN(sets * setSize)
		from, to := homes[i], setName(rand.IntN(sets))
		if from == to {
			continue
		}
		sent := time.Now()
		path := w.kind.path + "/" + clusterName(i)
		err := writer.do(ctx, http.MethodPatch, path, mergePatch, labelPatch(to), &bytes.Buffer{})
		if err != nil {
			return err
		}
		answered := time.Now()
		homes[i] = to
		events, lost, err := await(ctx, arrivals, clusterName(i), watchers[from]+watchers[to], answered)
		if err != nil {
			return err
		}
		if move >= warm {
			w.writes = append(w.writes, answered.Sub(sent))
			w.events = append(w.events, events...)
			w.lost += lost
			w.moved++
		}
		e.steps.at(move, e.options.moves)
	}
	return nil
}

// await collects the events of one cluster.
func await(
	ctx context.Context, arrivals <-chan arrival, name string, count int, since time.Time,
) (events samples, lost int, err error) {
	timeout := time.NewTimer(eventTimeout)
	defer timeout.Stop()
	for len(events) < count {
		select {
		case a := <-arrivals:
			if a.err != nil {
				return nil, 0, fmt.Errorf("the watch of %s ended: %w", a.set, a.err)
			}
			if a.name == name {
				// An event may arrive before the response to the write.
				events = append(events, max(0, a.at.Sub(since)))
			}
		case <-timeout.C:
			return events, count - len(events), nil
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	return events, 0, nil
}

// openWatches opens all watches, starting now, and returns their number for each set.
func openWatches(
	ctx context.Context, e *env, w *watching, sets int, arrivals chan<- arrival,
) (map[string]int, error) {
	clients, err := newClients(w.config, watchConnections)
	if err != nil {
		return nil, err
	}
	now, err := clients[0].list(ctx, w.list(setName(0)))
	if err != nil {
		return nil, err
	}
	watchers := map[string]int{}
	failed := make(chan error, e.options.watchers)
	slots := make(chan struct{}, 50) // the number that is opened concurrently
	var opening sync.WaitGroup
	for n := range e.options.watchers {
		set := setName(n % sets)
		watchers[set]++
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			path := w.watch(set) + "&watch=true&resourceVersion=" + now.Metadata.ResourceVersion
			response, err := clients[n%len(clients)].open(ctx, http.MethodGet, path, "", nil)
			if err != nil {
				failed <- err
				return
			}
			go follow(ctx, set, response, arrivals)
		})
	}
	opening.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
		return watchers, nil
	}
}

// follow passes on the events of a watch. The time is taken before the event is decoded.
func follow(ctx context.Context, set string, response *http.Response, arrivals chan<- arrival) {
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		at := time.Now()
		var event struct {
			Type   string `json:"type"`
			Object struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
					Name   string            `json:"name"`
				} `json:"metadata"`
				Spec struct {
					Cluster string `json:"cluster"`
				} `json:"spec"`
				Message string `json:"message"`
			} `json:"object"`
		}
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		if err == nil && event.Type == "ERROR" {
			err = fmt.Errorf("%s", event.Object.Message)
		}
		if ctx.Err() != nil {
			return
		}
		name := event.Object.Metadata.Name
		if event.Object.Spec.Cluster != "" {
			name = event.Object.Spec.Cluster // of a member
		}
		if err == nil && event.Type != "ADDED" && event.Type != "DELETED" {
			continue
		}
		select {
		case arrivals <- arrival{set, name, at, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
