// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

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
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// measureChange calls do, waits until hub-controller-manager is idle, and records the cost.
func (e *env) measureChange(ctx context.Context, name string, times int, do func(context.Context, int) error) (*changeResult, error) {
	e.Steps.Step("%s", name)
	c := &changeResult{Name: name, Times: times, Writes: map[string]float64{}}
	begun, cpu := time.Now(), e.CPUNow()
	for i := range times {
		if err := do(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := e.settled(ctx); err != nil {
		return nil, err
	}
	c.Seconds = kit.Seconds(time.Since(begun) - settledTicks*kit.SettleTick)
	used := e.CPUNow().Since(cpu).Minus(e.idle, time.Since(begun))
	c.CPU, c.Own = used.Per(times), float64(used[kit.ProcControllers].Microseconds())/1000/float64(times)
	requests, err := e.audit.Since(begun)
	if err != nil {
		return nil, err
	}
	for what, n := range requests.Writes() {
		c.Writes[what] = kit.Round(float64(n)/float64(times), 2)
	}
	e.result.Changes = append(e.result.Changes, c)
	return c, nil
}

// createPolicies creates all policies, and compares the placements with those of a full evaluation.
func (e *env) createPolicies(ctx context.Context) error {
	policies := e.Options.EdgePolicies
	if _, err := e.measureChange(ctx, changeFirst, 1, func(ctx context.Context, _ int) error {
		return e.create(ctx, policies, policyPath, func(i int) map[string]any {
			return map[string]any{"apiVersion": apiVersion, "kind": "DeploymentPolicy", "metadata": map[string]any{"name": policyName(i)}, "spec": policySpec(i, i)}
		})
	}); err != nil {
		return err
	}
	return e.evaluateAll(ctx)
}

// evaluateAll evaluates each policy for each node in its sets, in this process, with all objects in memory: the cost of a change without any cached
// decisions. The result must match the placements.
func (e *env) evaluateAll(ctx context.Context) error {
	e.Steps.Step("Evaluating everything")
	hub, err := versioned.NewForConfig(e.Hub.HubAPIServerConfig(0))
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
	services, err := hub.EdgeV1alpha1().EdgeServices(servicesNamespace).List(ctx, list)
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
	e.result.Changes[0].Decided = kit.Milliseconds(time.Since(begun))
	e.engine.Changed()
	byService := map[string][]edge.Service{}
	for _, s := range known {
		byService[s.Name] = append(byService[s.Name], s)
	}
	var took kit.Samples
	wanted := 0
	for range max(3, e.Options.Changes) {
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
	e.result.Everything, e.result.Placements = kit.Milliseconds(took.Median()), len(placements.Items)
	if len(placements.Items) != wanted || wanted == 0 {
		return fmt.Errorf("%d placements are there, and the rules want %d", len(placements.Items), wanted)
	}
	return nil
}

func policyKey(namespace, name string) engine.Key {
	return engine.Key{Namespace: namespace, Name: name}
}

// measureDecisions measures the processor time of the engine for one of these changes.
func (e *env) measureDecisions(c *changeResult, times int, do func(int) error) error {
	begun := time.Now()
	for i := range times {
		if err := do(i); err != nil {
			return err
		}
		e.engine.Changed()
	}
	c.Decided = kit.Milliseconds(time.Since(begun)) / float64(c.Times)
	return nil
}

// decode decodes what is sent into its type.
func decode[T any](spec map[string]any) (*T, error) {
	typed := new(T)
	return typed, json.Unmarshal(kit.MustJSON(spec), typed)
}

func (e *env) setNode(i, site, rank int) error {
	spec, err := decode[edgev1alpha1.EdgeNodeSpec](nodeSpec(site, rank))
	if err != nil {
		return err
	}
	scoped := true
	name := kit.ClusterName(i % e.nodes)
	return e.engine.SetNode(model.Node(name, spec, &edgev1alpha1.EdgeNodeStatus{
		Arch: "amd64", Namespace: "team", NamespaceScoped: &scoped, KubernetesVersion: "v1.37.1", ClusterID: name}))
}

func (e *env) setPolicy(i, site int) error {
	spec, err := decode[edgev1alpha1.DeploymentPolicySpec](policySpec(i, site))
	if err != nil {
		return err
	}
	return e.engine.SetDeployment(policyKey(namespaceName(i), policyName(i)), []edge.DeploymentSpec{model.Policy(namespaceName(i), policyName(i), spec, nil)})
}

// measureChanges measures single changes, and many at once.
func (e *env) measureChanges(ctx context.Context) error {
	times := e.Options.Changes
	node := func(i, site, rank int) error {
		return e.admins[0].Do(ctx, http.MethodPatch, apiPath+"edgenodes/"+kit.ClusterName(i%e.nodes), kit.MergePatch,
			kit.MustJSON(map[string]any{"spec": nodeSpec(site, rank)}), &bytes.Buffer{})
	}
	for _, change := range []struct {
		name string
		do   func(context.Context, int) error
		// decide is the same change for the engine.
		decide func(int) error
	}{
		{changePolicy, func(ctx context.Context, i int) error {
			return e.admins[0].Do(ctx, http.MethodPatch, policyPath(i)+"/"+policyName(i), kit.MergePatch,
				kit.MustJSON(map[string]any{"spec": policySpec(i, i+7)}), &bytes.Buffer{})
		}, func(i int) error { return e.setPolicy(i, i+7) }},
		{changeNode, func(_ context.Context, i int) error { return node(i*37, i*37+3, 1) },
			func(i int) error { return e.setNode(i*37, i*37+3, 1) }},
		{changeUnselected, func(_ context.Context, i int) error {
			return e.admins[0].Do(ctx, http.MethodPatch, apiPath+"edgenodes/"+kit.ClusterName(i*41%e.nodes), kit.MergePatch,
				kit.MustJSON(map[string]any{"spec": map[string]any{"label": fmt.Sprint("label ", i)}}), &bytes.Buffer{})
		}, func(i int) error { return e.setNode(i*41, i*41, 1) }},
	} {
		c, err := e.measureChange(ctx, change.name, times, change.do)
		if err != nil {
			return err
		}
		if err := e.measureDecisions(c, times, change.decide); err != nil {
			return err
		}
	}
	many := min(nodesAtOnce, e.nodes)
	c, err := e.measureChange(ctx, changeMany, 1, func(ctx context.Context, _ int) error {
		return e.WriteEach(ctx, e.admins, many, http.MethodPatch, kit.MergePatch, func(i int) string { return apiPath + "edgenodes/" + kit.ClusterName(i) },
			func(i int) []byte { return kit.MustJSON(map[string]any{"spec": nodeSpec(i, 2)}) })
	})
	if err != nil {
		return err
	}
	return e.measureDecisions(c, many, func(i int) error { return e.setNode(i, i, 2) })
}
