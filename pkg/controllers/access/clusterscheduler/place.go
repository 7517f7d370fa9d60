// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// placement returns the steps that give the request a cluster, unless it has one. If its status names a cluster that is gone, that is created again.
func (p *pass) placement() []kit.Step {
	return []kit.Step{
		{Name: "find the cluster that the request has", Do: p.findHeld},
		{Name: "check that the purpose has a definition", Do: p.checkPurpose},
		{Name: "check the policy", Do: p.checkPolicy},
		{Name: "add the finalizer to the request", Do: p.addFinalizer},
		{Name: "update the cluster that the request has", Do: p.updateHeld},
		{Name: "choose a shared cluster", Do: p.choose},
		{Name: "create a cluster", Do: p.create},
	}
}

// findHeld finds the cluster that the request has, if any. If the status names a cluster that has lost the finalizer, the finalizer is added again. If
// the status names none, a finalizer counts only on a cluster in a namespace that the definition trusts.
func (p *pass) findHeld(ctx context.Context) error {
	clusters, err := p.clustersOf(ctx, p.request)
	if err != nil {
		return err
	}
	known := p.request.Status.Cluster
	if known == nil {
		clusters = slices.DeleteFunc(clusters, func(c v1alpha1.Cluster) bool {
			return p.definition == nil || !p.definition.trusts(c.Namespace, p.request)
		})
		if len(clusters) > 0 {
			slices.SortFunc(clusters, byName)
			p.held = &clusters[0]
		}
		return nil
	}
	// A request can have more than one only if two processes decided concurrently.
	for i := range clusters {
		if client.ObjectKeyFromObject(&clusters[i]) != known.NamespacedName() {
			if err := p.free(ctx, p.request, &clusters[i]); err != nil {
				return err
			}
		}
	}
	cluster := &v1alpha1.Cluster{}
	if err := p.client.Get(ctx, known.NamespacedName(), cluster); err != nil {
		return kit.IgnoreGone(err)
	}
	p.held = cluster
	if slices.Contains(cluster.Finalizers, p.request.FinalizerForCluster()) || cluster.DeletionTimestamp != nil {
		return nil // finalizers cannot be added during a deletion
	}
	if cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		if err := p.onlyStale(ctx, cluster); err != nil {
			return err
		}
	}
	return p.assign(ctx, cluster)
}

// checkPurpose returns an Outcome if a cluster is needed and the purpose of the request has no definition.
func (p *pass) checkPurpose(context.Context) error {
	if p.held == nil && p.definition == nil {
		return kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "no cluster definition found for purpose '%s'", p.request.Spec.Purpose)
	}
	return nil
}

// checkPolicy checks whether the policy allows a request that has had no cluster.
func (p *pass) checkPolicy(ctx context.Context) error {
	if p.held != nil || p.request.Status.Cluster != nil || !p.config.policy.RestrictsClusterRequests() {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := p.live.Get(ctx, client.ObjectKey{Name: p.request.Namespace}, namespace); err != nil {
		return err
	}
	switch allowed, err := p.config.policy.ClusterRequestAllowed(ctx, p.request, namespace); {
	case err != nil:
		return kit.Outcomef(v1alpha1.ReasonConfigurationProblem, "%v", err)
	case !allowed:
		return kit.Outcomef(v1alpha1.ReasonDeniedByPolicy, "no rule of the policy allows requests in namespace %s the purpose '%s'",
			p.request.Namespace, p.request.Spec.Purpose)
	}
	return nil
}

// updateHeld adds the metadata of the request to the cluster that it has.
func (p *pass) updateHeld(ctx context.Context) error {
	p.cluster = p.held
	if p.cluster == nil || p.cluster.DeletionTimestamp != nil {
		return nil
	}
	_, err := kit.Patch(ctx, p.client, p.cluster, func(c *v1alpha1.Cluster) { propagated(p.request, c) })
	return err
}

// choose gives the request a shared cluster that exists, if there is one with capacity.
func (p *pass) choose(ctx context.Context) error {
	if p.cluster != nil || p.request.Status.Cluster != nil || p.definition.Template.Spec.Tenancy != v1alpha1.TENANCY_SHARED {
		return nil
	}
	clusters := &v1alpha1.ClusterList{}
	err := p.client.List(ctx, clusters, client.MatchingFields{purposeIndex: p.definition.purpose}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	candidates := slices.DeleteFunc(clusters.Items, func(c v1alpha1.Cluster) bool {
		return !p.definition.trusts(c.Namespace, p.request) || !p.definition.hasCapacity(&c)
	})
	if len(candidates) == 0 {
		return nil
	}
	slices.SortFunc(candidates, byName)
	chosen := 0
	switch p.config.Strategy {
	case StrategyRandom:
		chosen = p.pick(len(candidates))
	case StrategyBalanced:
		for i := range candidates {
			if candidates[i].GetTenancyCount() < candidates[chosen].GetTenancyCount() {
				chosen = i
			}
		}
	}
	p.cluster = candidates[chosen].DeepCopy()
	return p.assign(ctx, p.cluster)
}

// create creates a cluster for the request, unless it has one. An existing cluster of the name is adopted, if possible.
func (p *pass) create(ctx context.Context) error {
	if p.cluster != nil {
		return nil
	}
	cluster := p.definition.newCluster(p.request, p.request.Status.Cluster)
	err := p.client.Create(ctx, cluster)
	if err == nil {
		p.cluster = cluster
		return p.awaitCache(ctx, cluster, p.request.FinalizerForCluster())
	}
	if !apierrors.IsAlreadyExists(err) || cluster.Name == "" {
		return fmt.Errorf("creating the cluster: %w", err)
	}
	existing := &v1alpha1.Cluster{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(cluster), existing); err != nil {
		return err
	}
	if err := p.checkAdoptable(ctx, existing); err != nil {
		return err
	}
	p.cluster = existing
	return p.patch(ctx, existing, func(c *v1alpha1.Cluster) { p.definition.adopt(p.request, c, cluster) })
}

// checkAdoptable returns why a cluster of the name that the request needs cannot be given to it.
func (p *pass) checkAdoptable(ctx context.Context, existing *v1alpha1.Cluster) error {
	key, d := client.ObjectKeyFromObject(existing), p.definition
	if existing.DeletionTimestamp != nil {
		return kit.Outcomef(reasonWaitingForDeletion, "waits until Cluster %s, which is being deleted, is gone", key)
	}
	if !d.fits(existing) {
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists with profile '%s' and tenancy %s, and purpose '%s' "+
			"needs profile '%s' and tenancy %s",
			key, existing.Spec.Profile, existing.Spec.Tenancy, d.purpose, d.Template.Spec.Profile, d.Template.Spec.Tenancy)
	}
	if d.Template.Spec.Tenancy == v1alpha1.TENANCY_SHARED {
		if d.TenancyCount == 0 || existing.GetTenancyCount() < d.TenancyCount {
			return nil
		}
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists and is used by %d requests, which is its limit",
			key, existing.GetTenancyCount())
	}
	return p.onlyStale(ctx, existing)
}

// onlyStale returns an error unless all other requests that have a cluster are gone.
func (p *pass) onlyStale(ctx context.Context, cluster *v1alpha1.Cluster) error {
	others := cluster.GetRequestUIDs().Delete(string(p.request.UID))
	gone, err := p.gone(ctx, others)
	if err == nil && gone.Len() < others.Len() {
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists and is used by a different ClusterRequest "+
			"(the '%s' label with value 'true' can be set on the ClusterRequest for an unused name)",
			client.ObjectKeyFromObject(cluster), v1alpha1.RandomizeClusterNameLabel)
	}
	return err
}

// assign gives the request a cluster, which must be as it was read.
func (p *pass) assign(ctx context.Context, cluster *v1alpha1.Cluster) error {
	return p.patch(ctx, cluster, func(c *v1alpha1.Cluster) { markHeld(p.request, c) })
}

// patch changes a cluster that is still as it was read, and waits until the cache has it with the finalizer of the request.
func (p *pass) patch(ctx context.Context, cluster *v1alpha1.Cluster, change func(*v1alpha1.Cluster)) error {
	if changed, err := kit.Patch(ctx, p.client, cluster, change); err != nil || !changed {
		return err
	}
	return p.awaitCache(ctx, cluster, p.request.FinalizerForCluster())
}

// awaitCache waits until the cache has a cluster with a finalizer.
func (p *pass) awaitCache(ctx context.Context, cluster *v1alpha1.Cluster, finalizer string) error {
	cached := &v1alpha1.Cluster{}
	return wait.PollUntilContextTimeout(ctx, cacheTimeout/2000, cacheTimeout, true, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(cluster), cached)
		return err == nil && slices.Contains(cached.Finalizers, finalizer), kit.IgnoreGone(err)
	})
}
