// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// decided are the inputs of a decision about a placement.
type decided struct {
	node *edgev1alpha1.EdgeNode
	// sets are the sets bound to the namespace that have the cluster.
	sets []string
	// author is the recorded author of the policy or pattern.
	author string
	inputs []edgev1alpha1.ServiceInput
	// services are the services of the placement, in its order, without their archives.
	services []*edgev1alpha1.EdgeService
	attempts *attempts
}

// decide evaluates the rules again, and returns why the hub would not create this placement now. The hub writes works for users who may not do so
// themselves: so no placement is trusted, whichever user has written it.
func (r *Reconciler) decide(ctx context.Context, pair engine.Pair, p *edgev1alpha1.EdgePlacement) (d *decided, refusal string, err error) {
	d = &decided{node: &edgev1alpha1.EdgeNode{}}
	obj, gone, err := r.deployment(ctx, pair.Key, d)
	if gone || err != nil {
		return nil, "its policy or pattern no longer exists", err
	}
	d.author = obj.GetAnnotations()[edgev1alpha1.AuthorAnnotation]
	c := &clusterv1.ManagedCluster{}
	for _, get := range []client.Object{d.node, c} {
		switch err := r.client.Get(ctx, types.NamespacedName{Name: pair.Node}, get); {
		case kit.IsGone(err):
			return nil, "its node no longer exists", nil
		case err != nil:
			return nil, "", err
		}
	}
	if !c.Spec.HubAcceptsClient || !c.DeletionTimestamp.IsZero() || !edgeplacements.BelongsTo(d.node, c.UID) {
		return nil, "its node does not belong to an accepted cluster", nil
	}
	d.sets, err = r.setsOf(ctx, pair.Namespace, c)
	if len(d.sets) == 0 || err != nil {
		return nil, fmt.Sprintf("its cluster is in no set that is bound to namespace %s", pair.Namespace), err
	}
	n, err := edge.NewNode(model.Node(d.node.Name, &d.node.Spec, &d.node.Status))
	if err != nil {
		return nil, err.Error(), nil
	}
	decisions, specs, err := r.decisions(ctx, n, p, obj, d)
	if err != nil {
		return nil, "", err
	}
	all := d.services
	d.services = nil
	for _, s := range p.Spec.Services {
		origin := originOf(s, decisions, specs)
		if origin < 0 {
			return d, fmt.Sprintf("version %s of service %s in namespace %s is no longer the one that the rules choose", s.Version, s.Name, s.TargetNamespace), nil
		}
		i := slices.IndexFunc(all, func(one *edgev1alpha1.EdgeService) bool {
			return one.Namespace == s.Org && one.Spec.URL == s.Name && one.Spec.Version == s.Version && one.Spec.Arch == s.Arch
		})
		d.services = append(d.services, all[i])
		d.attempts.origins = append(d.attempts.origins, origin)
	}
	return d, "", nil
}

// originOf returns the index of the decision that matches a service of a placement, or -1.
func originOf(s edgev1alpha1.PlacedService, decisions []edge.Decision, specs []engine.Spec) int {
	for i, one := range decisions {
		if one.Compatible && specs[i].Org == s.Org && specs[i].Service == s.Name && one.Version == s.Version && one.Arch == s.Arch && one.Namespace == s.TargetNamespace {
			return i
		}
	}
	return -1
}

// deployment returns the policy or pattern of a placement.
func (r *Reconciler) deployment(ctx context.Context, key engine.Key, d *decided) (obj client.Object, gone bool, err error) {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	if key.Pattern {
		p := &edgev1alpha1.DeploymentPattern{}
		err = r.client.Get(ctx, name, p)
		obj, d.inputs = p, p.Spec.UserInput
	} else {
		p := &edgev1alpha1.DeploymentPolicy{}
		err = r.client.Get(ctx, name, p)
		obj, d.inputs = p, p.Spec.UserInput
	}
	return obj, kit.IsGone(err) || err == nil && !obj.GetDeletionTimestamp().IsZero(), kit.IgnoreGone(err)
}

// decisions returns the decisions about all services of a policy or pattern.
func (r *Reconciler) decisions(ctx context.Context, n *edge.Node, p *edgev1alpha1.EdgePlacement, obj client.Object, d *decided) ([]edge.Decision, []engine.Spec, error) {
	specs := edgeplacements.Specs(obj)
	var compiled []*edge.Deployment
	for i := range specs {
		list := &edgev1alpha1.EdgeServiceList{}
		if err := r.client.List(ctx, list, client.InNamespace(specs[i].Org), client.MatchingFields{byURL: specs[i].Service}); err != nil {
			return nil, nil, err
		}
		for j := range list.Items {
			if s := &list.Items[j]; s.DeletionTimestamp.IsZero() {
				specs[i].Services = append(specs[i].Services, model.StoredService(s))
				d.services = append(d.services, s)
			}
		}
		one, err := edge.NewDeployment(specs[i])
		if err != nil {
			return nil, nil, nil // Nothing is deployed by a spec that cannot be read.
		}
		compiled = append(compiled, one)
	}
	d.attempts = newAttempts(p, obj, specs, d.services)
	d.attempts.decide = func(failed []edge.Failed) []edge.Decision {
		if _, is := obj.(*edgev1alpha1.DeploymentPolicy); is {
			return []edge.Decision{edge.Decide(n, compiled[0], failed...)}
		}
		decisions, compatible := edge.DecidePattern(n, compiled, failed...)
		if !compatible {
			return nil
		}
		return decisions
	}
	return d.attempts.decide(edgeplacements.FailedVersions(d.attempts.list)), specs, nil
}

// setsOf returns the sets bound to the namespace that have the cluster.
func (r *Reconciler) setsOf(ctx context.Context, namespace string, c *clusterv1.ManagedCluster) (names []string, err error) {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := r.client.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, b := range bindings.Items {
		if !b.DeletionTimestamp.IsZero() || b.Spec.ClusterSet != b.Name {
			continue
		}
		set := &clusterv1beta2.ManagedClusterSet{}
		switch err := r.client.Get(ctx, types.NamespacedName{Name: b.Name}, set); {
		case kit.IsGone(err):
			continue
		case err != nil:
			return nil, err
		}
		if s, err := selector.ForV1beta2(set); err == nil && s.Matches(labels.Set(c.Labels)) {
			names = append(names, b.Name)
		}
	}
	return names, nil
}
