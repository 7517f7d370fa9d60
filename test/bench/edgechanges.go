// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
)

// measured calls do, waits until hub-controller-manager is idle, and records the cost.
func (e *edging) measured(ctx context.Context, name string, times int, do func(context.Context, int) error) (*edgeChange, error) {
	e.steps.step("%s", name)
	c := &edgeChange{Name: name, Times: times, Writes: map[string]float64{}}
	begun, cpu := time.Now(), e.cpuNow()
	for i := range times {
		if err := do(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := e.settled(ctx); err != nil {
		return nil, err
	}
	c.Seconds = seconds(time.Since(begun) - edgeSettledTicks*settleTick)
	used := e.cpuNow().since(cpu).less(e.idle, time.Since(begun))
	c.CPU, c.Own = used.per(times), float64(used[procControllers].Microseconds())/1000/float64(times)
	requests, err := e.audit.requests(begun)
	if err != nil {
		return nil, err
	}
	for what, n := range requests.writes() {
		c.Writes[what] = round(float64(n)/float64(times), 2)
	}
	e.result.Changes = append(e.result.Changes, c)
	return c, nil
}

// first creates all policies, and compares the placements with those of a full evaluation.
func (e *edging) first(ctx context.Context) error {
	policies := e.options.edgePolicies
	if _, err := e.measured(ctx, edgeFirst, 1, func(ctx context.Context, _ int) error {
		return e.create(ctx, policies, policyPath, func(i int) map[string]any {
			return map[string]any{"apiVersion": edgeKind, "kind": "DeploymentPolicy", "metadata": map[string]any{"name": policyName(i)}, "spec": policySpec(i, i)}
		})
	}); err != nil {
		return err
	}
	return e.everything(ctx)
}

// everything evaluates each policy for each node in its sets, in this process, with all objects in memory: the cost of a change without any cached
// decisions. The result must match the placements.
func (e *edging) everything(ctx context.Context) error {
	e.steps.step("Evaluating everything")
	hub, err := versioned.NewForConfig(e.hub.HubAPIServerConfig(0))
	if err != nil {
		return err
	}
	list := metav1.ListOptions{}
	nodes, err := hub.EdgeV1alpha1().EdgeNodes().List(ctx, list)
	if err != nil {
		return err
	}
	clusters, err := hub.ClusterV1().ManagedClusters().List(ctx, list)
	if err != nil {
		return err
	}
	sets, err := hub.ClusterV1beta2().ManagedClusterSets().List(ctx, list)
	if err != nil {
		return err
	}
	bindings, err := hub.ClusterV1beta2().ManagedClusterSetBindings("").List(ctx, list)
	if err != nil {
		return err
	}
	services, err := hub.EdgeV1alpha1().EdgeServices(edgeServices).List(ctx, list)
	if err != nil {
		return err
	}
	policies, err := hub.EdgeV1alpha1().DeploymentPolicies("").List(ctx, list)
	if err != nil {
		return err
	}
	placements, err := hub.EdgeV1alpha1().EdgePlacements("").List(ctx, list)
	if err != nil {
		return err
	}
	e.engine = engine.New()
	compiled := map[string]*edge.Node{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		compiled[n.Name], err = edge.NewNode(model.Node(n.Name, &n.Spec, &n.Status))
		if err != nil {
			return err
		}
		if err := e.engine.SetNode(model.Node(n.Name, &n.Spec, &n.Status)); err != nil {
			return err
		}
	}
	members, setsOf := map[string][]*edge.Node{}, map[string][]string{}
	for i := range sets.Items {
		selects, err := selector.ForV1beta2(&sets.Items[i])
		if err != nil {
			return err
		}
		for j := range clusters.Items {
			if c := &clusters.Items[j]; compiled[c.Name] != nil && selects.Matches(labels.Set(c.Labels)) {
				members[sets.Items[i].Name] = append(members[sets.Items[i].Name], compiled[c.Name])
				setsOf[c.Name] = append(setsOf[c.Name], sets.Items[i].Name)
			}
		}
	}
	for name, of := range setsOf {
		e.engine.SetSets(name, of)
	}
	reached := map[string][]*edge.Node{}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		reached[b.Namespace] = append(reached[b.Namespace], members[b.Name]...)
		e.engine.Bind(b.Namespace, b.Name)
	}
	var known []edge.Service
	for i := range services.Items {
		known = append(known, model.StoredService(&services.Items[i]))
		e.engine.SetService(known[i])
	}
	begun := time.Now()
	for i := range policies.Items {
		p := &policies.Items[i]
		if err := e.engine.SetDeployment(policyKey(p.Namespace, p.Name), []edge.DeploymentSpec{model.Policy(p.Namespace, p.Name, &p.Spec, nil)}); err != nil {
			return err
		}
	}
	e.result.Changes[0].Decided = milliseconds(time.Since(begun))
	e.engine.Changed()
	byService := map[string][]edge.Service{}
	for _, s := range known {
		byService[s.Name] = append(byService[s.Name], s)
	}
	var took samples
	wanted := 0
	for range max(3, e.options.changes) {
		begun := time.Now()
		wanted, e.result.Pairs = 0, 0
		for i := range policies.Items {
			p := &policies.Items[i]
			d, err := edge.NewDeployment(model.Policy(p.Namespace, p.Name, &p.Spec, byService[p.Spec.Service.Name]))
			if err != nil {
				return err
			}
			for _, n := range reached[p.Namespace] {
				if edge.Decide(n, d).Compatible {
					wanted++
				}
			}
			e.result.Pairs += len(reached[p.Namespace])
		}
		took = append(took, time.Since(begun))
	}
	e.result.Everything, e.result.Placements = milliseconds(took.median()), len(placements.Items)
	if len(placements.Items) != wanted || wanted == 0 {
		return fmt.Errorf("%d placements are there, and the rules want %d", len(placements.Items), wanted)
	}
	return nil
}

func policyKey(namespace, name string) engine.Key {
	return engine.Key{Namespace: namespace, Name: name}
}

// decided measures the processor time of the engine for one of these changes.
func (e *edging) decided(c *edgeChange, times int, do func(int) error) error {
	begun := time.Now()
	for i := range times {
		if err := do(i); err != nil {
			return err
		}
		e.engine.Changed()
	}
	c.Decided = milliseconds(time.Since(begun)) / float64(c.Times)
	return nil
}

// read decodes what is sent into its type.
func read[T any](spec map[string]any) (*T, error) {
	typed := new(T)
	return typed, json.Unmarshal(mustJSON(spec), typed)
}

func (e *edging) setNode(i, site, rank int) error {
	spec, err := read[edgev1alpha1.EdgeNodeSpec](nodeSpec(site, rank))
	if err != nil {
		return err
	}
	scoped := true
	name := clusterName(i % e.nodes)
	return e.engine.SetNode(model.Node(name, spec, &edgev1alpha1.EdgeNodeStatus{
		Arch: "amd64", Namespace: "team", NamespaceScoped: &scoped, KubernetesVersion: "v1.37.1", ClusterID: name}))
}

func (e *edging) setPolicy(i, site int) error {
	spec, err := read[edgev1alpha1.DeploymentPolicySpec](policySpec(i, site))
	if err != nil {
		return err
	}
	return e.engine.SetDeployment(policyKey(edgeNamespace(i), policyName(i)), []edge.DeploymentSpec{model.Policy(edgeNamespace(i), policyName(i), spec, nil)})
}

// changes measures single changes, and many at once.
func (e *edging) changes(ctx context.Context) error {
	times := e.options.changes
	node := func(i, site, rank int) error {
		return e.admins[0].do(ctx, http.MethodPatch, edgePath+"edgenodes/"+clusterName(i%e.nodes), mergePatch,
			mustJSON(map[string]any{"spec": nodeSpec(site, rank)}), &bytes.Buffer{})
	}
	for _, change := range []struct {
		name string
		do   func(context.Context, int) error
		// decide is the same change for the engine.
		decide func(int) error
	}{
		{edgePolicyEdit, func(ctx context.Context, i int) error {
			return e.admins[0].do(ctx, http.MethodPatch, policyPath(i)+"/"+policyName(i), mergePatch, mustJSON(map[string]any{"spec": policySpec(i, i+7)}), &bytes.Buffer{})
		}, func(i int) error { return e.setPolicy(i, i+7) }},
		{edgeNodeChange, func(_ context.Context, i int) error { return node(i*37, i*37+3, 1) },
			func(i int) error { return e.setNode(i*37, i*37+3, 1) }},
		{edgeNodeUnnamed, func(_ context.Context, i int) error {
			return e.admins[0].do(ctx, http.MethodPatch, edgePath+"edgenodes/"+clusterName(i*41%e.nodes), mergePatch,
				mustJSON(map[string]any{"spec": map[string]any{"label": fmt.Sprint("label ", i)}}), &bytes.Buffer{})
		}, func(i int) error { return e.setNode(i*41, i*41, 1) }},
	} {
		c, err := e.measured(ctx, change.name, times, change.do)
		if err != nil {
			return err
		}
		if err := e.decided(c, times, change.decide); err != nil {
			return err
		}
	}
	many := min(edgeAtOnce, e.nodes)
	c, err := e.measured(ctx, edgeMany, 1, func(ctx context.Context, _ int) error {
		return e.writeEach(ctx, e.admins, many, http.MethodPatch, mergePatch, func(i int) string { return edgePath + "edgenodes/" + clusterName(i) },
			func(i int) []byte { return mustJSON(map[string]any{"spec": nodeSpec(i, 2)}) })
	})
	if err != nil {
		return err
	}
	return e.decided(c, many, func(i int) error { return e.setNode(i, i, 2) })
}
