// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// placementTarget is a placement of a set, with the desired state of its clusters.
type placementTarget struct {
	placement string
	// problem is the reason why the placement has no decisions, or why its strategy cannot be followed. Its works stay as they are then.
	problem  *kit.Outcome
	strategy *rollout.Strategy
	groups   []rollout.Group
	clusters map[string]*rollout.ClusterProgress
	// works are the works to keep, by cluster.
	works map[string]*entry
	plan  *rollout.Plan
}

// targets returns the placements of a set. A placement that does not exist does not affect the others.
func (r *Reconciler) targets(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (targets []*placementTarget, err error) {
	seen := map[string]bool{}
	for _, ref := range set.Spec.PlacementRefs {
		if seen[ref.Name] {
			continue
		}
		seen[ref.Name] = true
		t, err := r.target(ctx, set.Namespace, ref)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func (r *Reconciler) target(ctx context.Context, namespace string, ref workv1alpha1.LocalPlacementReference) (*placementTarget, error) {
	t := &placementTarget{placement: ref.Name, clusters: map[string]*rollout.ClusterProgress{}, works: map[string]*entry{}}
	problem := func(reason, format string, args ...any) {
		t.problem = &kit.Outcome{Reason: reason, Message: fmt.Sprintf("placement %s: ", ref.Name) + fmt.Sprintf(format, args...)}
	}
	switch err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, &clusterv1beta1.Placement{}); {
	case kit.IsGone(err):
		problem(workv1alpha1.ReasonPlacementDecisionNotFound, "it does not exist; existing works are kept")
		return t, nil
	case err != nil:
		return nil, err
	}
	list := &clusterv1beta1.PlacementDecisionList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: ref.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		problem(workv1alpha1.ReasonPlacementDecisionEmpty, "it is not decided yet; existing works are kept")
		return t, nil
	}
	var err error
	t.strategy, err = strategyOf(&ref.RolloutStrategy)
	if err != nil {
		problem(workv1alpha1.ReasonNotAsExpected, "%v", err)
		return t, nil
	}
	t.fill(list.Items)
	return t, nil
}

// fill adds the clusters of decisions. It skips those that are not valid names of clusters: a name becomes a namespace.
func (t *placementTarget) fill(decisions []clusterv1beta1.PlacementDecision) {
	at := map[int]int{}
	for i := range decisions {
		d := &decisions[i]
		index, err := strconv.Atoi(d.Labels[clusterv1beta1.DecisionGroupIndexLabel])
		if err != nil {
			index = 0
		}
		if _, there := at[index]; !there {
			at[index] = len(t.groups)
			t.groups = append(t.groups, rollout.Group{Index: index, Name: d.Labels[clusterv1beta1.DecisionGroupNameLabel]})
		}
		g := &t.groups[at[index]]
		for _, one := range d.Status.Decisions {
			if len(validation.IsDNS1123Label(one.ClusterName)) > 0 {
				continue
			}
			c := t.clusters[one.ClusterName]
			if c == nil {
				c = &rollout.ClusterProgress{Name: one.ClusterName}
				t.clusters[one.ClusterName] = c
			}
			g.Clusters = append(g.Clusters, c)
		}
	}
}

// matchWorks finds the work to keep for each cluster, and returns surplus works and those whose cluster was not chosen.
func (t *placementTarget) matchWorks(works []*entry, key types.NamespacedName, current func(*entry) bool) (surplus []*entry) {
	fixed := workName(key, t.placement)
	slices.SortFunc(works, func(a, b *entry) int {
		return cmp.Or(compareBool(a.leaving(), b.leaving()), compareBool(a.work.Name != fixed, b.work.Name != fixed),
			a.work.CreationTimestamp.Compare(b.work.CreationTimestamp.Time), cmp.Compare(a.work.Name, b.work.Name))
	})
	for _, e := range works {
		c := t.clusters[e.cluster()]
		if c == nil || t.works[e.cluster()] != nil {
			if !e.leaving() {
				surplus = append(surplus, e)
			}
			continue
		}
		t.works[e.cluster()] = e
		c.Leaving = e.leaving()
		if c.Leaving {
			continue
		}
		c.Current = current(e)
		if c.Current {
			c.Observation, c.Written, c.Succeeded = e.observation, e.time(writtenAnnotation), e.time(succeededAnnotation)
		}
	}
	return surplus
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// decide computes the plan again.
func (t *placementTarget) decide(now time.Time) *rollout.Plan {
	t.plan = rollout.Decide(t.strategy, t.groups, now)
	return t.plan
}

// strategyOf converts a strategy of the API.
func strategyOf(from *clusterv1alpha1.RolloutStrategy) (*rollout.Strategy, error) {
	s := &rollout.Strategy{Type: rollout.Type(from.Type)}
	var common clusterv1alpha1.RolloutConfig
	var mandatory []clusterv1alpha1.MandatoryDecisionGroup
	switch {
	case from.Type == clusterv1alpha1.Progressive && from.Progressive != nil:
		p := from.Progressive
		common, mandatory, s.MaxConcurrency = p.RolloutConfig, p.MandatoryDecisionGroups.MandatoryDecisionGroups, p.MaxConcurrency
	case from.Type == clusterv1alpha1.ProgressivePerGroup && from.ProgressivePerGroup != nil:
		common, mandatory = from.ProgressivePerGroup.RolloutConfig, from.ProgressivePerGroup.MandatoryDecisionGroups.MandatoryDecisionGroups
	case (from.Type == clusterv1alpha1.All || from.Type == "") && from.All != nil:
		common = from.All.RolloutConfig
	}
	for _, g := range mandatory {
		s.Mandatory = append(s.Mandatory, rollout.MandatoryGroup{Name: g.GroupName, Index: int(g.GroupIndex)})
	}
	s.MinSuccessTime, s.MaxFailures = common.MinSuccessTime.Duration, common.MaxFailures
	var err error
	s.ProgressDeadline, err = rollout.ParseDeadline(common.ProgressDeadline)
	if err != nil {
		return nil, err
	}
	return s, s.Validate()
}
