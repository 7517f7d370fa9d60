// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementexplanation

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	placementfleet "github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
	"github.com/clusterhub/clusterhub/pkg/registry/stored"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// state reads the input of the scheduling of a placement. It has only the clusters of the placement's sets, from the view, which knows the members.
func (r *REST) state(ctx context.Context, who user.Info, program *spec.Program, p *v1beta1.Placement) (
	state run.Snapshot, seen *visibility.OfSets, err error,
) {
	state = run.Snapshot{Now: r.now(), Placement: p}
	exist, err := stored.Sets(ctx, r.stored.Sets)
	if err != nil {
		return state, nil, err
	}
	state.Bindings, err = stored.BoundSets(ctx, r.stored.Bindings, p.Namespace)
	if err != nil {
		return state, nil, err
	}
	var from []string
	for _, name := range state.Bindings {
		if _, exists := exist[name]; exists && program.ChoosesFrom(name) {
			from = append(from, name)
		}
	}
	seen, err = r.visible.OfSets(ctx, who, from)
	if err != nil {
		return state, nil, err
	}
	state.Clusters, err = newFleet(exist, from, seen)
	if err != nil {
		return state, nil, err
	}
	if program.NeedsScores() {
		state.Scores, err = r.scores(ctx)
		if err != nil {
			return state, nil, err
		}
	}
	state.Decisions, state.Load, err = r.decisions(ctx, p, program.NeedsLoad())
	return state, seen, err
}

// decisions returns the decisions of the placement, and the number of decisions of others for each cluster, if that is needed.
func (r *REST) decisions(ctx context.Context, p *v1beta1.Placement, load bool) (own []*v1beta1.PlacementDecision, _ placementfleet.Load, err error) {
	namespace := p.Namespace
	selects := &internalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{cluster.PlacementLabel: p.Name})}
	if load {
		namespace, selects = "", nil
	}
	all, err := stored.List[*cluster.PlacementDecisionList](ctx, r.stored.Decisions, namespace, selects)
	if err != nil {
		return nil, nil, err
	}
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	clusters := map[types.NamespacedName][]string{}
	for i := range all.Items {
		d := &all.Items[i]
		of := types.NamespacedName{Namespace: d.Namespace, Name: d.Labels[cluster.PlacementLabel]}
		switch {
		case of == key:
			versioned := &v1beta1.PlacementDecision{}
			if err := v1beta1.Convert_cluster_PlacementDecision_To_v1beta1_PlacementDecision(d, versioned, nil); err != nil {
				return nil, nil, apierrors.NewInternalError(err)
			}
			own = append(own, versioned)
		case of.Name != "":
			for j := range d.Status.Decisions {
				clusters[of] = append(clusters[of], d.Status.Decisions[j].ClusterName)
			}
		}
	}
	if !load {
		return own, nil, nil
	}
	loads := placementfleet.NewLoads()
	for of, names := range clusters {
		loads.Set(of, names)
	}
	return own, loads.Others(key), nil
}

// scores has the scores of all clusters.
type scores map[types.NamespacedName]*v1alpha1.AddOnPlacementScore

// Score implements placement.Scores.
func (s scores) Score(cluster, name string) *v1alpha1.AddOnPlacementScore {
	return s[types.NamespacedName{Namespace: cluster, Name: name}]
}

func (r *REST) scores(ctx context.Context) (placementfleet.Scores, error) {
	all, err := stored.List[*cluster.AddOnPlacementScoreList](ctx, r.stored.Scores, "", nil)
	if err != nil {
		return nil, err
	}
	found := make(scores, len(all.Items))
	for i := range all.Items {
		versioned := &v1alpha1.AddOnPlacementScore{}
		if err := v1alpha1.Convert_cluster_AddOnPlacementScore_To_v1alpha1_AddOnPlacementScore(&all.Items[i], versioned, nil); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		found[types.NamespacedName{Namespace: versioned.Namespace, Name: versioned.Name}] = versioned
	}
	return found, nil
}

// fleet has the clusters of the sets of a placement.
type fleet struct {
	exist    map[string]error
	members  map[string][]*placementfleet.ClusterInfo
	clusters map[string]*placementfleet.ClusterInfo
}

func newFleet(exist map[string]error, sets []string, seen *visibility.OfSets) (*fleet, error) {
	f := &fleet{exist: exist, members: map[string][]*placementfleet.ClusterInfo{}, clusters: map[string]*placementfleet.ClusterInfo{}}
	for _, set := range sets {
		for object := range seen.Each(set) {
			stored, ok := object.(*cluster.ManagedCluster)
			if !ok {
				return nil, apierrors.NewInternalError(fmt.Errorf("the view has a %T", object))
			}
			c := f.clusters[stored.Name]
			if c == nil {
				versioned := &v1.ManagedCluster{}
				if err := v1.Convert_cluster_ManagedCluster_To_v1_ManagedCluster(stored, versioned, nil); err != nil {
					return nil, apierrors.NewInternalError(err)
				}
				c = placementfleet.NewCluster(versioned)
				f.clusters[stored.Name] = c
			}
			f.members[set] = append(f.members[set], c)
		}
	}
	return f, nil
}

// Cluster implements placement.Clusters.
func (f *fleet) Cluster(name string) *placementfleet.ClusterInfo { return f.clusters[name] }

// Members implements placement.Clusters.
func (f *fleet) Members(set string) (members []*placementfleet.ClusterInfo, exists bool, err error) {
	err, exists = f.exist[set]
	return f.members[set], exists, err
}
