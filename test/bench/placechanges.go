// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// placementChange is a change of one object, and its results.
type placementChange struct {
	name string
	// cluster reports whether a cluster may be changed.
	cluster func(name string) bool
	// do changes a cluster for the nth time. undo reverts that, and is not measured.
	do, undo func(ctx context.Context, cluster string, n int) error

	took, peer samples
	// none is the number of changes that have changed no decision.
	none  int
	tries int
	cpu   cpuTimes
	// own and peerCPU are the processor times of hub-controller-manager and of the peer per change.
	own, peerCPU samples
	writes       map[string]int
	runs         int
	decisions    int
}

// patch sends a merge patch directly.
func (p *placing) patch(ctx context.Context, path string, body map[string]any) error {
	return p.admins[1].do(ctx, http.MethodPatch, path, mergePatch, mustJSON(body), &bytes.Buffer{})
}

func (p *placing) relabel(key string, value func(n int) string) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, n int) error {
		return p.patch(ctx, ourClusters+"/"+cluster, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value(n)}}})
	}
}

// labelOfNone is a label that no placement selects by.
const labelOfNone = "example.com/of-none"

func (p *placing) taint(taints ...any) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, _ int) error {
		return p.patch(ctx, ourClusters+"/"+cluster, map[string]any{"spec": map[string]any{"taints": taints}})
	}
}

func (p *placing) score(value func(n int) int) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, n int) error {
		return p.admins[1].do(ctx, http.MethodPatch, scorePath(cluster)+"/"+scoreName+"/status", mergePatch, scoreBody(value(n)), &bytes.Buffer{})
	}
}

// Names of changes in the report.
const (
	changeOther = "a label that no placement asks for"
	changeLabel = "a label that predicates ask for, of a chosen cluster"
	changeScore = "a score, of a chosen cluster"
	changeTaint = "a taint, of a chosen cluster"
)

func (p *placing) placementChanges(shape *placementShape) []*placementChange {
	anyOne := func(string) bool { return true }
	env := func(value string) func(context.Context, string, int) error {
		return p.relabel("env", func(int) string { return value })
	}
	hasScore := func(name string) bool {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "cluster-"))
		return err == nil && i%scored == 0
	}
	changes := []*placementChange{
		{name: changeOther, cluster: anyOne, do: p.relabel(labelOfNone, strconv.Itoa)},
		{name: changeLabel, cluster: anyOne, do: env("staging"), undo: env("production")},
		{name: changeScore, cluster: hasScore, do: p.score(func(n int) int { return -100 + n }), undo: p.score(func(n int) int { return 90 + n })},
		{name: changeTaint, cluster: anyOne, do: p.taint(map[string]any{"key": "bench", "effect": "NoSelect"}), undo: p.taint()},
	}
	if !shape.asked {
		changes = append(changes[:1], changes[2:]...)
	}
	return changes
}

// first measures the first scheduling of all placements, and then the peer's.
func (p *placing) first(ctx context.Context, shape *placementShape, result *placingResult) error {
	p.steps.step("First scheduling (%s)", shape.name)
	events := p.watch.count()
	runs, err := p.runs(ctx)
	if err != nil {
		return err
	}
	defer p.cpuProfile(ctx, "place-"+shape.name, 10)()
	begun, cpu := time.Now(), p.cpuNow()
	if err := p.many(ctx, p.options.placements, http.MethodPost, "application/json", func(i int) string {
		return placementsPath + "namespaces/" + shape.namespace(i) + "/placements"
	}, func(i int) []byte {
		return mustJSON(map[string]any{"apiVersion": clusterGroup + "/v1beta1", "kind": "Placement",
			"metadata": map[string]any{"name": fmt.Sprintf("placement-%05d", i)}, "spec": shape.spec})
	}); err != nil {
		return err
	}
	made := time.Since(begun)
	if err := p.settled(ctx); err != nil {
		return err
	}
	_, last, err := p.watch.since(events)
	if err != nil {
		return err
	}
	if filled := p.watch.filled(); filled != p.options.placements {
		return fmt.Errorf("%d of %d placements have clusters", filled, p.options.placements)
	}
	used := p.cpuNow().since(cpu)
	requests, err := p.audit.requests(begun)
	if err != nil {
		return err
	}
	after, err := p.runs(ctx)
	if err != nil {
		return err
	}
	p.steps.step("The peer's first scheduling")
	p.naive, err = p.readNaive(ctx)
	if err != nil {
		return err
	}
	took, peerCPU, _, err := p.naive.timed(ctx)
	if err != nil {
		return err
	}
	result.First = &placingFirst{
		Made: seconds(made), Seconds: seconds(last.Sub(begun)), CPU: used.per(p.options.placements), Writes: requests.writes(),
		Refused: requests.refused(), Runs: after - runs, Peer: seconds(took), PeerCPU: seconds(peerCPU),
	}
	return p.alike()
}

// rest measures the hub without any change.
func (p *placing) rest(ctx context.Context, result *placingResult) error {
	p.steps.step("Watching for %s what is done at rest", placingRest)
	begun, cpu := time.Now(), p.cpuNow()
	if err := sleep(ctx, placingRest); err != nil {
		return err
	}
	p.idle = p.cpuNow().since(cpu).over(time.Since(begun))
	requests, err := p.audit.requests(begun)
	result.RestWrites, result.RestReads = requests.writes(), requests.reads()
	result.RestCores = p.idle.cores(time.Second)
	return err
}

// placingRest is the time for which the hub is watched at rest.
const placingRest = 10 * time.Second

// changes does all changes, each several times, in turns with the peer.
func (p *placing) changes(ctx context.Context, shape *placementShape, result *placingResult) error {
	for _, c := range p.placementChanges(shape) {
		p.steps.step("%d times: %s (%s)", p.options.changes, c.name, shape.name)
		for n := range p.options.changes {
			if err := p.change(ctx, c, n); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		result.Changes = append(result.Changes, c.result(p.options.placements))
	}
	return nil
}

func (p *placing) change(ctx context.Context, c *placementChange, n int) error {
	cluster, decisions := p.watch.chosen(c.cluster)
	if cluster == "" {
		return fmt.Errorf("no decision has a cluster of the kind")
	}
	events := p.watch.count()
	runs, err := p.runs(ctx)
	if err != nil {
		return err
	}
	begun, cpu := time.Now(), p.cpuNow()
	if err := c.do(ctx, cluster, n); err != nil {
		return err
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	used := p.cpuNow().since(cpu).less(p.idle, time.Since(begun))
	changed, last, err := p.watch.since(events)
	if err != nil {
		return err
	}
	requests, err := p.audit.requests(begun)
	if err != nil {
		return err
	}
	after, err := p.runs(ctx)
	if err != nil {
		return err
	}
	c.count(used, requests.writes(), after-runs, decisions)
	if changed > 0 {
		c.took = append(c.took, last.Sub(begun))
	} else {
		c.none++
	}
	// Now the same change for the peer.
	if err := p.follow(ctx, cluster); err != nil {
		return err
	}
	took, peerCPU, _, err := p.naive.timed(ctx)
	if err != nil {
		return err
	}
	c.peer, c.peerCPU = append(c.peer, took), append(c.peerCPU, peerCPU)
	if c.undo == nil {
		return nil
	}
	if err := c.undo(ctx, cluster, n); err != nil {
		return err
	}
	return p.settled(ctx)
}

func (c *placementChange) count(used cpuTimes, writes map[string]int, runs, decisions int) {
	c.cpu.add(used)
	c.own = append(c.own, used[procControllers])
	if c.writes == nil {
		c.writes = map[string]int{}
	}
	for what, n := range writes {
		c.writes[what] += n
	}
	c.runs, c.decisions, c.tries = c.runs+runs, c.decisions+decisions, c.tries+1
}
