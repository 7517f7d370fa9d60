// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// placementChange is a change of one object, and its results.
type placementChange struct {
	name string
	// cluster reports whether a cluster may be changed.
	cluster func(name string) bool
	// do changes a cluster for the nth time. undo reverts that, and is not measured.
	do, undo func(ctx context.Context, cluster string, n int) error

	took, peer kit.Samples
	// none is the number of changes that have changed no decision.
	none  int
	tries int
	cpu   kit.CPUTimes
	// own and peerCPU are the processor times of hub-controller-manager and of the peer per change.
	own, peerCPU kit.Samples
	writes       map[string]int
	runs         int
	decisions    int
}

// patch sends a merge patch directly.
func (p *env) patch(ctx context.Context, path string, body map[string]any) error {
	return p.admins[1].Do(ctx, http.MethodPatch, path, kit.MergePatch, kit.MustJSON(body), &bytes.Buffer{})
}

func (p *env) relabel(key string, value func(n int) string) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, n int) error {
		return p.patch(ctx, kit.ClustersPath+"/"+cluster, map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value(n)}}})
	}
}

// unusedLabel is a label that no placement selects by.
const unusedLabel = "example.com/of-none"

func (p *env) taint(taints ...any) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, _ int) error {
		return p.patch(ctx, kit.ClustersPath+"/"+cluster, map[string]any{"spec": map[string]any{"taints": taints}})
	}
}

func (p *env) score(value func(n int) int) func(context.Context, string, int) error {
	return func(ctx context.Context, cluster string, n int) error {
		return p.admins[1].Do(ctx, http.MethodPatch, scorePath(cluster)+"/"+scoreName+"/status", kit.MergePatch, scoreBody(value(n)), &bytes.Buffer{})
	}
}

// Names of changes in the report.
const (
	changeOther = "a label that no placement asks for"
	changeLabel = "a label that predicates ask for, of a chosen cluster"
	changeScore = "a score, of a chosen cluster"
	changeTaint = "a taint, of a chosen cluster"
)

func (p *env) placementChanges(shape *placementShape) []*placementChange {
	anyOne := func(string) bool { return true }
	env := func(value string) func(context.Context, string, int) error {
		return p.relabel("env", func(int) string { return value })
	}
	hasScore := func(name string) bool {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "cluster-"))
		return err == nil && i%scored == 0
	}
	changes := []*placementChange{
		{name: changeOther, cluster: anyOne, do: p.relabel(unusedLabel, strconv.Itoa)},
		{name: changeLabel, cluster: anyOne, do: env("staging"), undo: env("production")},
		{name: changeScore, cluster: hasScore, do: p.score(func(n int) int { return -100 + n }), undo: p.score(func(n int) int { return 90 + n })},
		{name: changeTaint, cluster: anyOne, do: p.taint(map[string]any{"key": "bench", "effect": "NoSelect"}), undo: p.taint()},
	}
	if !shape.selectsLabel {
		changes = append(changes[:1], changes[2:]...)
	}
	return changes
}

// measureFirst measures the first scheduling of all placements, and then the peer's.
func (p *env) measureFirst(ctx context.Context, shape *placementShape, result *shapeResult) error {
	p.Steps.Step("First scheduling (%s)", shape.name)
	events := p.watch.count()
	runs, err := p.runs(ctx)
	if err != nil {
		return err
	}
	defer p.CPUProfile(ctx, "place-"+shape.name, 10)()
	begun, cpu := time.Now(), p.CPUNow()
	if err := p.writeDirect(ctx, p.Options.Placements, http.MethodPost, "application/json", func(i int) string {
		return placementsPath + "namespaces/" + shape.namespace(i) + "/placements"
	}, func(i int) []byte {
		return kit.MustJSON(map[string]any{"apiVersion": kit.ClusterGroup + "/v1beta1", "kind": "Placement",
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
	if filled := p.watch.filled(); filled != p.Options.Placements {
		return fmt.Errorf("%d of %d placements have clusters", filled, p.Options.Placements)
	}
	used := p.CPUNow().Since(cpu)
	requests, err := p.audit.Since(begun)
	if err != nil {
		return err
	}
	after, err := p.runs(ctx)
	if err != nil {
		return err
	}
	p.Steps.Step("The peer's first scheduling")
	p.naive, err = p.readNaive(ctx)
	if err != nil {
		return err
	}
	took, peerCPU, _, err := p.naive.timed(ctx)
	if err != nil {
		return err
	}
	result.First = &firstResult{
		Made: kit.Seconds(made), Seconds: kit.Seconds(last.Sub(begun)), CPU: used.Per(p.Options.Placements), Writes: requests.Writes(),
		Refused: requests.Refused(), Runs: after - runs, Peer: kit.Seconds(took), PeerCPU: kit.Seconds(peerCPU),
	}
	return p.compareFirst()
}

// measureRest measures the hub without any change.
func (p *env) measureRest(ctx context.Context, result *shapeResult) error {
	p.Steps.Step("Watching for %s what is done at rest", restWindow)
	begun, cpu := time.Now(), p.CPUNow()
	if err := kit.Sleep(ctx, restWindow); err != nil {
		return err
	}
	p.idle = p.CPUNow().Since(cpu).PerSecond(time.Since(begun))
	requests, err := p.audit.Since(begun)
	result.RestWrites, result.RestReads = requests.Writes(), requests.Reads()
	result.RestCores = p.idle.Cores(time.Second)
	return err
}

// restWindow is the time for which the hub is watched at rest.
const restWindow = 10 * time.Second

// measureChanges does all changes, each several times, in turns with the peer.
func (p *env) measureChanges(ctx context.Context, shape *placementShape, result *shapeResult) error {
	for _, c := range p.placementChanges(shape) {
		p.Steps.Step("%d times: %s (%s)", p.Options.Changes, c.name, shape.name)
		for n := range p.Options.Changes {
			if err := p.measureChange(ctx, c, n); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		result.Changes = append(result.Changes, c.result(p.Options.Placements))
	}
	return nil
}

func (p *env) measureChange(ctx context.Context, c *placementChange, n int) error {
	cluster, decisions := p.watch.chosen(c.cluster)
	if cluster == "" {
		return fmt.Errorf("no decision has a cluster of the kind")
	}
	events := p.watch.count()
	runs, err := p.runs(ctx)
	if err != nil {
		return err
	}
	begun, cpu := time.Now(), p.CPUNow()
	if err := c.do(ctx, cluster, n); err != nil {
		return err
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	used := p.CPUNow().Since(cpu).Minus(p.idle, time.Since(begun))
	changed, last, err := p.watch.since(events)
	if err != nil {
		return err
	}
	requests, err := p.audit.Since(begun)
	if err != nil {
		return err
	}
	after, err := p.runs(ctx)
	if err != nil {
		return err
	}
	c.count(used, requests.Writes(), after-runs, decisions)
	if changed > 0 {
		c.took = append(c.took, last.Sub(begun))
	} else {
		c.none++
	}
	// Now the same change for the peer.
	if err := p.updatePeer(ctx, cluster); err != nil {
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

func (c *placementChange) count(used kit.CPUTimes, writes map[string]int, runs, decisions int) {
	c.cpu.Add(used)
	c.own = append(c.own, used[kit.ProcControllers])
	if c.writes == nil {
		c.writes = map[string]int{}
	}
	for what, n := range writes {
		c.writes[what] += n
	}
	c.runs, c.decisions, c.tries = c.runs+runs, c.decisions+decisions, c.tries+1
}
