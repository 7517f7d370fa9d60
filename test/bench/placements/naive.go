// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/placement"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	placementrun "github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// naive is the peer of hub-controller-manager: on each change it evaluates every placement against every cluster of its sets. The evaluation is
// hub-controller-manager's own, pkg/placement, in this process, with everything in memory and without writes. So the comparison is about the number
// of placements that a change causes to be evaluated, and not about the speed of one evaluation.
type naive struct {
	fleet      *fleet.Index
	loads      *fleet.Loads
	scores     naiveScores
	placements []*naivePlacement
}

type naivePlacement struct {
	key       types.NamespacedName
	object    *clusterv1beta1.Placement
	program   *spec.Program
	bindings  []string
	decisions map[string]*clusterv1beta1.PlacementDecision
}

type naiveScores map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore

// Score implements placement.Scores.
func (s naiveScores) Score(cluster, name string) *clusterv1alpha1.AddOnPlacementScore {
	return s[types.NamespacedName{Namespace: cluster, Name: name}]
}

func newNaive() *naive {
	return &naive{fleet: fleet.New(), loads: fleet.NewLoads(), scores: naiveScores{}}
}

// readNaive reads all objects of the hub.
func (p *env) readNaive(ctx context.Context) (*naive, error) {
	client, err := versioned.NewForConfig(p.Hub.HubAPIServerConfig(0))
	if err != nil {
		return nil, err
	}
	n := newNaive()
	all := metav1.ListOptions{}
	sets, err := client.ClusterV1beta2().ManagedClusterSets().List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		n.fleet.SetSet(&sets.Items[i])
	}
	clusters, err := client.ClusterV1().ManagedClusters().List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range clusters.Items {
		n.fleet.SetCluster(&clusters.Items[i])
	}
	scores, err := client.ClusterV1alpha1().AddOnPlacementScores("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range scores.Items {
		n.setScore(&scores.Items[i])
	}
	bindings, err := client.ClusterV1beta2().ManagedClusterSetBindings("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	bound := map[string][]string{}
	for i := range bindings.Items {
		bound[bindings.Items[i].Namespace] = append(bound[bindings.Items[i].Namespace], bindings.Items[i].Spec.ClusterSet)
	}
	placements, err := client.ClusterV1beta1().Placements("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range placements.Items {
		n.add(&placements.Items[i], bound[placements.Items[i].Namespace])
	}
	return n, nil
}

func (n *naive) setScore(score *clusterv1alpha1.AddOnPlacementScore) {
	n.scores[types.NamespacedName{Namespace: score.Namespace, Name: score.Name}] = score
}

func (n *naive) add(object *clusterv1beta1.Placement, bindings []string) {
	n.placements = append(n.placements, &naivePlacement{
		key: types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object: object,
		program: spec.Compile(&object.Spec), bindings: bindings, decisions: map[string]*clusterv1beta1.PlacementDecision{},
	})
}

// round evaluates everything, and returns the number of decisions that differ.
func (n *naive) round(ctx context.Context, now time.Time) (changed int, err error) {
	by := map[types.NamespacedName]*naivePlacement{}
	var jobs []placement.Job
	for _, p := range n.placements {
		by[p.key] = p
		jobs = append(jobs, placement.Job{Program: p.program, State: placementrun.Snapshot{
			Now: now, Placement: p.object, Decisions: slices.Collect(maps.Values(p.decisions)), Bindings: p.bindings,
			Clusters: n.fleet, Scores: n.scores,
		}})
	}
	err = placement.Round(ctx, n.loads, jobs, func(j placement.Job, r *placementrun.Result) error {
		changed += len(r.Steps)
		by[types.NamespacedName{Namespace: j.State.Placement.Namespace, Name: j.State.Placement.Name}].apply(r)
		return nil
	})
	return changed, err
}

// apply updates the decisions to a result.
func (p *naivePlacement) apply(r *placementrun.Result) {
	for _, step := range r.Steps {
		d := p.decisions[step.Name]
		switch {
		case step.Action == placementrun.Delete:
			delete(p.decisions, step.Name)
			continue
		case d == nil:
			d = &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
				Namespace: p.key.Namespace, Name: step.Name, OwnerReferences: placementrun.Owners(p.object)}}
		default:
			d = d.DeepCopy()
		}
		d.Labels = step.Labels
		if step.Action != placementrun.Relabel {
			d.Status.Decisions = step.Decisions
		}
		p.decisions[step.Name] = d
	}
	p.object = p.object.DeepCopy()
	p.object.Status = r.Status
}

// timed calls round, and returns its time and processor time.
func (n *naive) timed(ctx context.Context) (took, cpu time.Duration, changed int, err error) {
	before, begun := kit.OwnCPU(), time.Now()
	changed, err = n.round(ctx, begun)
	return time.Since(begun), kit.OwnCPU() - before, changed, err
}

// updatePeer updates a cluster and its scores in the peer.
func (p *env) updatePeer(ctx context.Context, cluster string) error {
	client, err := versioned.NewForConfig(p.Hub.HubAPIServerConfig(0))
	if err != nil {
		return err
	}
	var object *clusterv1.ManagedCluster
	object, err = client.ClusterV1().ManagedClusters().Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return err
	}
	p.naive.fleet.SetCluster(object)
	scores, err := client.ClusterV1alpha1().AddOnPlacementScores(cluster).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range scores.Items {
		p.naive.setScore(&scores.Items[i])
	}
	return nil
}

// errPeer reports that the result of the peer cannot be used.
var errPeer = errors.New("the peer has not scheduled what hub-controller-manager has")

// compareFirst verifies that the peer's first scheduling has as many decisions as hub-controller-manager's.
func (p *env) compareFirst() error {
	own := 0
	for _, one := range p.naive.placements {
		for _, d := range one.decisions {
			if len(d.Status.Decisions) > 0 {
				own++
			}
		}
	}
	if got := p.watch.filled(); own != got {
		return fmt.Errorf("%w: %d decisions with clusters instead of %d", errPeer, own, got)
	}
	return nil
}
