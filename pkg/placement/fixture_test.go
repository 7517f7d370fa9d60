// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a hub with one placement, whose results are written as a controller would write them.
type world struct {
	t         *testing.T
	now       time.Time
	fleet     *fleet.Index
	scores    scoreMap
	loads     *fleet.Loads
	bindings  []string
	placement *clusterv1beta1.Placement
	decisions []*clusterv1beta1.PlacementDecision
	last      *run.Result
}

type scoreMap map[string]*clusterv1alpha1.AddOnPlacementScore

func (m scoreMap) Score(cluster, name string) *clusterv1alpha1.AddOnPlacementScore {
	return m[cluster+"/"+name]
}

var key = types.NamespacedName{Namespace: "ns", Name: "p"}

// newWorld returns a world with the set s1, bound, and these clusters in it.
func newWorld(t *testing.T, clusters ...*clusterv1.ManagedCluster) *world {
	w := &world{t: t, now: start, fleet: fleet.New(), scores: scoreMap{}, loads: fleet.NewLoads(), bindings: []string{"s1"}}
	w.placement = &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name)}}
	w.set("s1")
	w.add(clusters...)
	return w
}

func (w *world) spec() *clusterv1beta1.PlacementSpec { return &w.placement.Spec }

func (w *world) add(clusters ...*clusterv1.ManagedCluster) {
	for _, c := range clusters {
		w.fleet.SetCluster(c)
	}
}

// set adds an exclusive set of that name.
func (w *world) set(name string) { w.fleet.SetSet(exclusiveSet(name)) }

func exclusiveSet(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

func labelSet(name string, selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
	s := exclusiveSet(name)
	s.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: selector}
	return s
}

// managed returns a cluster in the set s1. Each detail is label:k=v, claim:k=v, taint:k=v:effect, cpu:n or memory:n.
func managed(name string, details ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s1"}}}
	c.Status.Allocatable, c.Status.Capacity = clusterv1.ResourceList{}, clusterv1.ResourceList{}
	for _, detail := range details {
		what, text, _ := strings.Cut(detail, ":")
		k, v, _ := strings.Cut(text, "=")
		switch what {
		case "label":
			c.Labels[k] = v
		case "claim":
			c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: k, Value: v})
		case "taint":
			value, effect, _ := strings.Cut(v, ":")
			c.Spec.Taints = append(c.Spec.Taints, clusterv1.Taint{Key: k, Value: value, Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.NewTime(start)})
		case "cpu", "memory":
			c.Status.Allocatable[clusterv1.ResourceName(what)] = resource.MustParse(text)
			c.Status.Capacity[clusterv1.ResourceName(what)] = resource.MustParse("100")
		default:
			panic(detail)
		}
	}
	return c
}

// many returns clusters with generated names.
func many(n int, details ...string) (all []*clusterv1.ManagedCluster) {
	for i := range n {
		all = append(all, managed(fmt.Sprintf("c%05d", i+1), details...))
	}
	return all
}

func (w *world) score(cluster, name, score string, value int32) *clusterv1alpha1.AddOnPlacementScore {
	obj := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	obj.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: score, Value: value}}
	w.scores[cluster+"/"+name] = obj
	return obj
}

func (w *world) state() run.Snapshot {
	return run.Snapshot{Now: w.now, Placement: w.placement, Decisions: w.decisions, Bindings: w.bindings,
		Clusters: w.fleet, Scores: w.scores, Load: w.loads.Others(key)}
}

// schedule runs the placement and applies its result, and after each step checks what readers see. It returns the clusters.
func (w *world) schedule() []string {
	w.t.Helper()
	result := run.Schedule(w.t.Context(), spec.Compile(w.spec()), w.state())
	w.last = result
	if result.Disabled {
		return nil
	}
	before := w.clusters()
	for _, step := range result.Steps {
		w.apply(step)
		w.check(before, result.Clusters)
	}
	w.placement.Status = result.Status
	if got := w.clusters(); len(w.decisions) > 0 && !slices.Equal(got, result.Clusters) {
		w.t.Fatalf("the decisions have %v, the result %v", got, result.Clusters)
	}
	if again := run.Schedule(w.t.Context(), spec.Compile(w.spec()), w.state()); len(again.Steps) > 0 || !equality.Semantic.DeepEqual(again.Status, result.Status) {
		w.t.Fatalf("scheduled again, without any change: %+v\n%+v\n%+v", again.Steps, again.Status, result.Status)
	}
	return result.Clusters
}

func (w *world) apply(step run.Step) {
	w.t.Helper()
	i := slices.IndexFunc(w.decisions, func(d *clusterv1beta1.PlacementDecision) bool { return d.Name == step.Name })
	if (i < 0) != (step.Action == run.Create) {
		w.t.Fatalf("%s of %s, which is at %d", step.Action, step.Name, i)
	}
	if step.Action == run.Delete {
		w.decisions = slices.Delete(slices.Clone(w.decisions), i, i+1)
		return
	}
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: step.Name, Labels: maps.Clone(step.Labels), OwnerReferences: run.Owners(w.placement)}}
	d.Status.Decisions = slices.Clone(step.Decisions)
	if step.Decisions == nil || len(step.Decisions) > 100 {
		w.t.Fatalf("%d decisions: %v", len(step.Decisions), step)
	}
	w.decisions = slices.Clone(w.decisions)
	if i < 0 {
		w.decisions = append(w.decisions, d)
		return
	}
	if step.Action == run.Relabel {
		d.Status = w.decisions[i].Status
	}
	w.decisions[i] = d
}

// check fails if a cluster that was chosen and stays is missing now.
func (w *world) check(before, after []string) {
	w.t.Helper()
	now := map[string]bool{}
	for _, name := range w.clusters() {
		now[name] = true
	}
	for _, name := range before {
		if _, stays := slices.BinarySearch(after, name); stays && !now[name] {
			w.t.Fatalf("%s is in no decision for a moment", name)
		}
	}
}

// clusters returns the clusters in the decisions, without duplicates.
func (w *world) clusters() []string {
	names := []string{}
	for _, d := range w.decisions {
		for _, one := range d.Status.Decisions {
			names = append(names, one.ClusterName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expect schedules and compares the clusters.
func (w *world) expect(names ...string) {
	w.t.Helper()
	if got := w.schedule(); !slices.Equal(got, names) {
		w.t.Fatalf("chosen: %v, want %v (%+v)", got, names, w.placement.Status.Conditions)
	}
}

// condition compares one of the two conditions: Status Reason, and a part of the message.
func (w *world) condition(conditionType, want, message string) {
	w.t.Helper()
	for _, c := range w.placement.Status.Conditions {
		if c.Type == conditionType {
			if got := string(c.Status) + " " + c.Reason; got != want || !strings.Contains(c.Message, message) {
				w.t.Fatalf("%s is %s %q, want %s %q", conditionType, got, c.Message, want, message)
			}
			return
		}
	}
	w.t.Fatalf("no condition %s", conditionType)
}

func (w *world) satisfied(want, message string) {
	w.t.Helper()
	w.condition(clusterv1beta1.PlacementConditionSatisfied, want, message)
}

// emptyDecision fails unless there is one decision, without clusters.
func (w *world) emptyDecision() {
	w.t.Helper()
	if len(w.decisions) != 1 || len(w.decisions[0].Status.Decisions) != 0 || w.decisions[0].Status.Decisions == nil {
		w.t.Fatalf("decisions: %v", w.decisions)
	}
	g := w.placement.Status.DecisionGroups
	if len(g) != 1 || g[0].ClustersCount != 0 || !slices.Equal(g[0].Decisions, []string{"p-decision-1"}) || w.placement.Status.NumberOfSelectedClusters != 0 {
		w.t.Fatalf("status: %+v", w.placement.Status)
	}
}

func matchLabels(pairs ...string) clusterv1beta1.ClusterPredicate {
	p := clusterv1beta1.ClusterPredicate{}
	p.RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		p.RequiredClusterSelector.LabelSelector.MatchLabels[k] = v
	}
	return p
}

func withClaim(p clusterv1beta1.ClusterPredicate, name string, values ...string) clusterv1beta1.ClusterPredicate {
	p.RequiredClusterSelector.ClaimSelector.MatchExpressions = append(p.RequiredClusterSelector.ClaimSelector.MatchExpressions,
		metav1.LabelSelectorRequirement{Key: name, Operator: metav1.LabelSelectorOpIn, Values: values})
	return p
}

func withCEL(p clusterv1beta1.ClusterPredicate, expressions ...string) clusterv1beta1.ClusterPredicate {
	p.RequiredClusterSelector.CelSelector.CelExpressions = expressions
	return p
}

func builtIn(name string, weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{Weight: &weight, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: name}}
}

func addOn(resource, score string, weight int32) clusterv1beta1.PrioritizerConfig {
	return clusterv1beta1.PrioritizerConfig{Weight: &weight, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{
		Type: clusterv1beta1.ScoreCoordinateTypeAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: resource, ScoreName: score}}}
}

func exact(configurations ...clusterv1beta1.PrioritizerConfig) clusterv1beta1.PrioritizerPolicy {
	return clusterv1beta1.PrioritizerPolicy{Mode: clusterv1beta1.PrioritizerPolicyModeExact, Configurations: configurations}
}

func number(n int32) *int32 { return &n }
