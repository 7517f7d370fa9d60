// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

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

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// watchConnections is the number of HTTP/2 connections that the watches share.
const watchConnections = 8

// watchWay is one way to watch sets.
type watchWay struct {
	name string
	// kind is the kind whose labels are written.
	kind kit.Kind
	// list and watch return the paths for a set.
	list, watch func(set string) string
	config      *rest.Config

	events, writes kit.Samples
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
func watches(ctx context.Context, e *kit.Env, r *Results) error {
	members := func(set string) string { return kit.MembersPath + "?" + kit.BySetField(set) }
	peers := func(set string) string { return kit.PeerClustersPath + "?" + kit.BySetLabel(set) }
	all := []*watchWay{
		{name: watchMembersFront, kind: kit.Ours, list: members, watch: members, config: e.Front()},
		{name: watchMembersDirect, kind: kit.Ours, list: members, watch: members, config: e.Direct()},
		{name: watchPeer, kind: kit.Peer, list: peers, watch: peers, config: e.Front()},
	}
	sets := map[string][]string{kit.Ours.Name: homes(e.Options.Fleet), kit.Peer.Name: homes(e.Options.Fleet)}
	for _, w := range all {
		if err := watchOne(ctx, e, w, sets[w.kind.Name]); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	r.addWatches(e.Options.Watchers, all)
	return nil
}

// homes returns the sets of the clusters, by number.
func homes(fleet int) []string {
	homes := make([]string, fleet)
	for i := range homes {
		homes[i] = kit.SetOf(i)
	}
	return homes
}

func watchOne(ctx context.Context, e *kit.Env, w *watchWay, homes []string) error {
	e.Steps.Step("Opening %d watches of %s", e.Options.Watchers, w.name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sets := min(len(homes)/kit.SetSize, e.Options.Watchers)
	arrivals := make(chan arrival, 10*e.Options.Watchers)
	watchers, err := openWatches(ctx, e, w, sets, arrivals)
	if err != nil {
		return err
	}
	writer, err := kit.NewClient(e.Front())
	if err != nil {
		return err
	}
	e.Steps.Step("Writing the labels of %d clusters", e.Options.Moves)
	if w.name == watchMembersFront {
		defer e.CPUProfile(ctx, "watch", 5)()
	}
	// The first writes are not counted: they fill the caches of permissions.
	const warm = 5
	for move := range e.Options.Moves + warm {
		i := rand.IntN(sets * kit.SetSize)
		from, to := homes[i], kit.SetName(rand.IntN(sets))
		if from == to {
			continue
		}
		sent := time.Now()
		path := w.kind.Path + "/" + kit.ClusterName(i)
		err := writer.Do(ctx, http.MethodPatch, path, kit.MergePatch, kit.LabelPatch(to), &bytes.Buffer{})
		if err != nil {
			return err
		}
		answered := time.Now()
		homes[i] = to
		events, lost, err := await(ctx, arrivals, kit.ClusterName(i), watchers[from]+watchers[to], answered)
		if err != nil {
			return err
		}
		if move >= warm {
			w.writes = append(w.writes, answered.Sub(sent))
			w.events = append(w.events, events...)
			w.lost += lost
			w.moved++
		}
		e.Steps.At(move, e.Options.Moves)
	}
	return nil
}

// await collects the events of one cluster.
func await(
	ctx context.Context, arrivals <-chan arrival, name string, count int, since time.Time,
) (events kit.Samples, lost int, err error) {
	timeout := time.NewTimer(kit.EventTimeout)
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
	ctx context.Context, e *kit.Env, w *watchWay, sets int, arrivals chan<- arrival,
) (map[string]int, error) {
	clients, err := kit.NewClients(w.config, watchConnections)
	if err != nil {
		return nil, err
	}
	now, err := clients[0].List(ctx, w.list(kit.SetName(0)))
	if err != nil {
		return nil, err
	}
	watchers := map[string]int{}
	failed := make(chan error, e.Options.Watchers)
	slots := make(chan struct{}, 50) // the number that is opened concurrently
	var opening sync.WaitGroup
	for n := range e.Options.Watchers {
		set := kit.SetName(n % sets)
		watchers[set]++
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			path := w.watch(set) + "&watch=true&resourceVersion=" + now.Metadata.ResourceVersion
			response, err := clients[n%len(clients)].Open(ctx, http.MethodGet, path, "", nil)
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
