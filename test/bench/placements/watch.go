// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// decisionWatch watches all decisions of a hub.
type decisionWatch struct {
	mu sync.Mutex
	// clusters are the clusters of each decision.
	clusters map[string][]string
	// version is the resource version of the last event.
	version string
	events  int
	last    time.Time
	err     error
}

// watchDecisions watches until the context ends.
func watchDecisions(ctx context.Context, c *kit.Client) (*decisionWatch, error) {
	const path = placementsPath + "placementdecisions"
	now, err := c.List(ctx, path)
	if err != nil {
		return nil, err
	}
	w := &decisionWatch{clusters: map[string][]string{}, version: now.Metadata.ResourceVersion}
	open := func() (*http.Response, error) {
		return c.Open(ctx, http.MethodGet, path+"?watch=true&allowWatchBookmarks=true&resourceVersion="+w.version, "", nil)
	}
	response, err := open()
	if err != nil {
		return nil, err
	}
	go func() {
		// A server ends a watch that is slow or old. Resume where it has ended.
		for err := error(nil); ; response, err = open() {
			if err == nil {
				err = w.listen(response)
			}
			if err != nil || ctx.Err() != nil {
				w.mu.Lock()
				w.err = err
				w.mu.Unlock()
				return
			}
		}
	}()
	return w, nil
}

// listen processes the events of a watch until it ends.
func (w *decisionWatch) listen(response *http.Response) error {
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if err := w.observe(line, time.Now()); err != nil {
			return err
		}
	}
}

// observe records an event with its time.
func (w *decisionWatch) observe(line []byte, at time.Time) error {
	var event struct {
		Type   string
		Object struct {
			Metadata struct{ Namespace, Name, ResourceVersion string }
			Status   struct {
				Decisions []struct{ ClusterName string }
			}
			Message string
		}
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	if event.Type == "ERROR" {
		return fmt.Errorf("%s", event.Object.Message)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = event.Object.Metadata.ResourceVersion
	if event.Type == "BOOKMARK" {
		return nil
	}
	key := event.Object.Metadata.Namespace + "/" + event.Object.Metadata.Name
	w.clusters[key] = nil
	for _, d := range event.Object.Status.Decisions {
		w.clusters[key] = append(w.clusters[key], d.ClusterName)
	}
	if event.Type == "DELETED" {
		delete(w.clusters, key)
	}
	w.events, w.last = w.events+1, at
	return nil
}

func (w *decisionWatch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// since returns the number of events after the first before ones, and the time of the last one.
func (w *decisionWatch) since(before int) (events int, last time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events - before, w.last, w.err
}

// filled returns the number of decisions that have clusters.
func (w *decisionWatch) filled() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, clusters := range w.clusters {
		if len(clusters) > 0 {
			n++
		}
	}
	return n
}

// chosen returns the first cluster by name that a decision has and that a condition holds for, and the number of decisions that have it.
func (w *decisionWatch) chosen(holds func(string) bool) (cluster string, decisions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, clusters := range w.clusters {
		for _, name := range clusters {
			counts[name]++
			if holds(name) && (cluster == "" || name < cluster) {
				cluster = name
			}
		}
	}
	return cluster, counts[cluster]
}

// runs returns how often hub-controller-manager has scheduled a placement.
func (p *env) runs(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return 0, err
	}
	const counter = "scheduling_scheduling_duration_seconds_count "
	for line := range strings.Lines(body.String()) {
		if value, ok := strings.CutPrefix(line, counter); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("%s has no %s", p.metrics, counter)
}
