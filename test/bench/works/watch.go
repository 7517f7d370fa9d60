// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// streams is the number of watches that share one HTTP/2 connection.
const streams = 100

// workEvent is an event at the watcher of a cluster's works.
type workEvent struct {
	cluster, name, version string
	at                     time.Time
}

// workWatchers watch the works of one cluster each, directly.
type workWatchers struct {
	*storeEnv
	open   int
	events chan workEvent
	// seen counts all events, and failed the watches that have ended.
	seen, failed atomic.Int64
}

// watchAll opens watches for a part of the clusters and then for all, and measures the latency of events with each.
func (w *storeEnv) watchAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchers := &workWatchers{storeEnv: w, events: make(chan workEvent, 1000)}
	before, err := w.ReadMemory(ctx)
	if err != nil {
		return err
	}
	for _, number := range watchStages(w.Options.SmallFleet()) {
		begun, cpu := time.Now(), w.CPUNow()
		if err := watchers.openTo(ctx, number); err != nil {
			return err
		}
		stage := watchResult{Watchers: number, Opening: kit.Seconds(time.Since(begun)), CPU: w.CPUNow().Since(cpu).Per(number)}
		stage.Memory.After, err = w.ReadMemory(ctx)
		if err != nil {
			return err
		}
		stage.Memory.Before = before
		if err := watchers.measureEvents(ctx, &stage); err != nil {
			return err
		}
		w.result.Watched = append(w.result.Watched, stage)
	}
	seen := watchers.seen.Load()
	if err := w.compareWrites(ctx); err != nil {
		return err
	}
	// An agent gets events of its own works and of no others.
	want := int64(2 * min(comparedWorks, w.Options.SmallFleet()*w.Options.WorksPerCluster))
	if err := kit.Eventually(ctx, func() error {
		if got := watchers.seen.Load() - seen; got != want {
			return fmt.Errorf("%d events instead of %d have come to the watches of works", got, want)
		}
		return nil
	}); err != nil {
		return err
	}
	if n := watchers.failed.Load(); n > 0 {
		return fmt.Errorf("%d watches have ended", n)
	}
	return nil
}

// watchStages returns the numbers of watches for the measurements.
func watchStages(all int) []int {
	if part := all / 10; part > 0 {
		return []int{part, all}
	}
	return []int{all}
}

// openTo opens watches until there are number of them, starting now.
func (w *workWatchers) openTo(ctx context.Context, number int) error {
	w.Steps.Step("Opening watches until there are %d", number)
	now, err := w.direct[0].List(ctx, worksPath+kit.ClusterName(0)+"/manifestworks")
	if err != nil {
		return err
	}
	clients, err := kit.NewClients(w.Hub.HubAPIServerConfig(0), (number-w.open+streams-1)/streams)
	if err != nil {
		return err
	}
	failed := make(chan error, number)
	slots := make(chan struct{}, 50)
	var opening sync.WaitGroup
	for i := w.open; i < number; i++ {
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			path := worksPath + kit.ClusterName(i) + "/manifestworks?watch=true&allowWatchBookmarks=true&timeoutSeconds=7200&resourceVersion=" + now.Metadata.ResourceVersion
			response, err := clients[(i-w.open)/streams].Open(ctx, http.MethodGet, path, "", nil)
			if err != nil {
				failed <- err
				return
			}
			go w.follow(ctx, kit.ClusterName(i), response)
		})
	}
	opening.Wait()
	w.open = number
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// follow passes on the events of labels. The time is taken before the event is decoded.
func (w *workWatchers) follow(ctx context.Context, cluster string, response *http.Response) {
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		at := time.Now()
		if ctx.Err() != nil {
			return
		}
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Namespace, Name, ResourceVersion string }
			}
		}
		if err == nil {
			err = json.Unmarshal(line, &event)
		}
		metadata := event.Object.Metadata
		if err == nil && (event.Type == "ERROR" || event.Type != "BOOKMARK" && metadata.Namespace != cluster) {
			err = errors.New("not what was watched")
		}
		if err != nil {
			w.failed.Add(1)
			return
		}
		if event.Type == "BOOKMARK" {
			continue
		}
		w.seen.Add(1)
		select {
		case w.events <- workEvent{cluster, metadata.Name, metadata.ResourceVersion, at}:
		default: // no receiver waits for it
		}
	}
}

// measureEvents writes labels of works, one after the other, and measures the time until the watch of its cluster has the event.
func (w *workWatchers) measureEvents(ctx context.Context, stage *watchResult) error {
	w.Steps.Step("Writing %d labels of works, with %d watches", workWrites, w.open)
	defer w.CPUProfile(ctx, fmt.Sprintf("works-watch-%d", w.open), 5)()
	var events, writes kit.Samples
	cpu, begun := w.CPUNow(), time.Now()
	for n := range workWrites {
		cluster, name := kit.ClusterName(rand.IntN(w.open)), workName(rand.IntN(w.written))
		path := worksPath + cluster + "/manifestworks/" + name
		sent := time.Now()
		var answer bytes.Buffer
		if err := w.direct[0].Do(ctx, http.MethodPatch, path, kit.MergePatch,
			kit.MustJSON(map[string]any{"metadata": map[string]any{"labels": map[string]any{"bench": fmt.Sprint(w.open, "-", n)}}}), &answer); err != nil {
			return err
		}
		answered := time.Now()
		at, err := w.await(ctx, cluster, name, answer.Bytes())
		if err != nil {
			return err
		}
		writes, events = append(writes, answered.Sub(sent)), append(events, at.Sub(sent))
	}
	stage.Writes, stage.Median, stage.P99 = len(events), kit.Milliseconds(events.Median()), kit.Milliseconds(events.P99())
	stage.WriteMedian, stage.WriteP99 = kit.Milliseconds(writes.Median()), kit.Milliseconds(writes.P99())
	stage.WriteCPU = w.CPUNow().Since(cpu).Per(len(events))
	stage.Took = kit.Seconds(time.Since(begun))
	return nil
}

// await waits for the event of one write. It ignores earlier ones.
func (w *workWatchers) await(ctx context.Context, cluster, name string, answer []byte) (time.Time, error) {
	var written struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(answer, &written); err != nil {
		return time.Time{}, err
	}
	timeout := time.NewTimer(kit.EventTimeout)
	defer timeout.Stop()
	for {
		select {
		case e := <-w.events:
			if e.cluster == cluster && e.name == name && e.version == written.Metadata.ResourceVersion {
				return e.at, nil
			}
		case <-timeout.C:
			return time.Time{}, fmt.Errorf("the watch of %s has no event of %s after %s", cluster, name, kit.EventTimeout)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
