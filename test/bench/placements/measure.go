// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placements measures the scheduling of placements: (k).
package placements

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/audit"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

const (
	placementsPath = "/apis/" + kit.ClusterGroup + "/v1beta1/"
	scoresGroup    = kit.ClusterGroup + "/v1alpha1"
	// scoreName is the name of the AddOnPlacementScore of a cluster, and of the score in it.
	scoreName = "demo"
	// scored is the inverse of the share of clusters that have scores.
	scored = 10
	// chosenClusters is the number of clusters that each placement chooses.
	chosenClusters = 10
)

// env is a hub with the clusters of the fleet, and placements that choose from them.
type env struct {
	*kit.Env
	audit *audit.Log
	// metrics is the URL of hub-controller-manager's metrics.
	metrics string
	admins  []*kit.Client
	naive   *naive
	watch   *decisionWatch
	results Results
	// idle is the processor time of the processes per second at rest.
	idle kit.CPUTimes
}

// placementShape is how placements are distributed over the fleet.
type placementShape struct {
	name string
	// namespaces is the number of namespaces with placements, and set returns the set that one of them binds.
	namespaces int
	set        func(namespace int) string
	spec       map[string]any
	// selectsLabel reports whether there is a predicate for the label that one of the changes is about.
	selectsLabel bool
}

func (s *placementShape) namespace(i int) string {
	return fmt.Sprintf("%s-%04d", s.name, i%s.namespaces)
}

// Shapes in the report.
const (
	shapeTeams = "teams"
	shapeWhole = "whole"
	wholeSet   = "whole-fleet"
)

// prioritizers returns those of Open Cluster Management's own benchmark.
func prioritizers(mode string) map[string]any {
	builtIn := func(name string) map[string]any {
		return map[string]any{"scoreCoordinate": map[string]any{"type": "BuiltIn", "builtIn": name}, "weight": 1}
	}
	return map[string]any{"mode": mode, "configurations": []any{
		map[string]any{"scoreCoordinate": map[string]any{"type": "AddOn",
			"addOn": map[string]any{"resourceName": scoreName, "scoreName": scoreName}}, "weight": 1},
		builtIn("ResourceAllocatableCPU"), builtIn("Balance"),
	}}
}

func placementShapes(o kit.Options) []*placementShape {
	sets := o.SmallFleet() / kit.SetSize
	return []*placementShape{
		{name: shapeTeams, namespaces: sets, set: kit.SetName, selectsLabel: true, spec: map[string]any{
			"numberOfClusters": chosenClusters, "prioritizerPolicy": prioritizers("Additive"),
			"predicates": []any{map[string]any{"requiredClusterSelector": map[string]any{
				"labelSelector": map[string]any{"matchLabels": map[string]any{"env": "production"}}}}},
		}},
		{name: shapeWhole, namespaces: 1, set: func(int) string { return wholeSet }, spec: map[string]any{
			"numberOfClusters": chosenClusters, "prioritizerPolicy": prioritizers("Exact"),
		}},
	}
}

// Measure measures placements on a hub without kube-controller-manager, which would create a ServiceAccount in each namespace.
func Measure(ctx context.Context, o kit.Options) (results Results, err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	p := &env{metrics: "http://" + address + "/metrics"}
	adapt := func(c *localhub.Options) (err error) {
		c.WithoutKubeControllerManager = true
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, "--max-placements-per-namespace=0")
		c.HubControllerManagerArgs = []string{"--registration-drivers=", "--metrics-bind-address=" + address}
		p.audit, err = audit.New(c, audit.ControllersPolicy)
		return err
	}
	err = kit.WithHub(ctx, o, adapt, func(ctx context.Context, e *kit.Env) error {
		p.Env = e
		return p.measure(ctx)
	})
	return p.results, err
}

func (p *env) measure(ctx context.Context) (err error) {
	p.admins, err = kit.NewClients(p.Hub.HubAPIServerConfig(0), kit.Connections)
	if err != nil {
		return err
	}
	if err := p.fillFleet(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.watch, err = watchDecisions(ctx, p.admins[0])
	if err != nil {
		return err
	}
	for _, shape := range placementShapes(p.Options) {
		result := &shapeResult{Shape: shape.name, Clusters: p.Options.SmallFleet(), Placements: p.Options.Placements, Namespaces: shape.namespaces}
		p.results = append(p.results, result)
		if err := p.measureShape(ctx, shape, result); err != nil {
			return fmt.Errorf("%s: %w", shape.name, err)
		}
	}
	return nil
}

// writeDirect does one write for each number below n, with all writers, directly.
func (p *env) writeDirect(ctx context.Context, n int, method, contentType string, path func(int) string, body func(int) []byte) error {
	return p.WriteEach(ctx, p.admins, n, method, contentType, path, body)
}

// fillFleet creates clusters with a status, sets, and scores of a part of the clusters.
func (p *env) fillFleet(ctx context.Context) error {
	fleet := p.Options.SmallFleet()
	p.Steps.Step("Making %d sets and %d clusters with a status", fleet/kit.SetSize+1, fleet)
	whole := kit.MustJSON(map[string]any{"apiVersion": kit.ClusterGroup + "/v1beta2", "kind": "ManagedClusterSet", "metadata": map[string]any{"name": wholeSet},
		"spec": map[string]any{"clusterSelector": map[string]any{"selectorType": "LabelSelector", "labelSelector": map[string]any{}}}})
	if err := p.admins[0].Do(ctx, http.MethodPost, kit.SetsPath, "application/json", whole, &bytes.Buffer{}); err != nil {
		return err
	}
	const create = "application/json"
	if err := p.writeDirect(ctx, fleet/kit.SetSize, http.MethodPost, create, func(int) string { return kit.SetsPath }, kit.SetBody); err != nil {
		return err
	}
	if err := p.writeDirect(ctx, fleet, http.MethodPost, create, func(int) string { return kit.ClustersPath },
		func(i int) []byte { return kit.ClusterBody(kit.Ours, i) }); err != nil {
		return err
	}
	if err := p.writeDirect(ctx, fleet, http.MethodPatch, kit.MergePatch,
		func(i int) string { return kit.ClustersPath + "/" + kit.ClusterName(i) + "/status" }, kit.StatusBody); err != nil {
		return err
	}
	p.Steps.Step("Making the scores of %d clusters", fleet/scored)
	of := func(i int) string { return kit.ClusterName(i * scored) }
	if err := p.CreateNamespaces(ctx, fleet/scored, of); err != nil {
		return err
	}
	if err := p.writeDirect(ctx, fleet/scored, http.MethodPost, create, func(i int) string { return scorePath(of(i)) }, func(int) []byte {
		return kit.MustJSON(map[string]any{"apiVersion": scoresGroup, "kind": "AddOnPlacementScore", "metadata": map[string]any{"name": scoreName}})
	}); err != nil {
		return err
	}
	return p.writeDirect(ctx, fleet/scored, http.MethodPatch, kit.MergePatch, func(i int) string { return scorePath(of(i)) + "/" + scoreName + "/status" },
		func(i int) []byte { return scoreBody(i % 100) })
}

func scorePath(cluster string) string {
	return "/apis/" + scoresGroup + "/namespaces/" + cluster + "/addonplacementscores"
}

// scoreBody returns a merge patch with the score of a cluster.
func scoreBody(value int) []byte {
	return kit.MustJSON(map[string]any{"status": map[string]any{"scores": []any{map[string]any{"name": scoreName, "value": value}}}})
}

// measureShape creates the placements of one shape, and changes objects that they depend on.
func (p *env) measureShape(ctx context.Context, shape *placementShape, result *shapeResult) error {
	p.Steps.Step("Making %d namespaces that bind a set, and %d placements in them (%s)", shape.namespaces, p.Options.Placements, shape.name)
	if err := p.CreateNamespaces(ctx, shape.namespaces, shape.namespace); err != nil {
		return err
	}
	if err := p.writeDirect(ctx, shape.namespaces, http.MethodPost, "application/json", func(i int) string {
		return "/apis/" + kit.ClusterGroup + "/v1beta2/namespaces/" + shape.namespace(i) + "/managedclustersetbindings"
	}, func(i int) []byte {
		return kit.MustJSON(map[string]any{"apiVersion": kit.ClusterGroup + "/v1beta2", "kind": "ManagedClusterSetBinding",
			"metadata": map[string]any{"name": shape.set(i)}, "spec": map[string]any{"clusterSet": shape.set(i)}})
	}); err != nil {
		return err
	}
	if err := p.settled(ctx); err != nil {
		return err
	}
	if err := p.measureFirst(ctx, shape, result); err != nil {
		return err
	}
	if err := p.measureRest(ctx, result); err != nil {
		return err
	}
	if err := p.measureChanges(ctx, shape, result); err != nil {
		return err
	}
	p.Steps.Step("Deleting the placements and their decisions")
	for _, kind := range []string{"placements", "placementdecisions"} { // there is no garbage collector
		if err := p.writeDirect(ctx, shape.namespaces, http.MethodDelete, "", func(i int) string {
			return placementsPath + "namespaces/" + shape.namespace(i) + "/" + kind
		}, func(int) []byte { return nil }); err != nil {
			return err
		}
	}
	return p.settled(ctx)
}

// settledTicks is the number of ticks for which hub-controller-manager must be idle.
const settledTicks = 3

// settled waits until hub-controller-manager is idle: it uses no processor time and no decision changes.
func (p *env) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return p.AwaitIdle(ctx, settledTicks, p.watch.count)
}
