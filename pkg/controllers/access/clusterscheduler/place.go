// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// held returns the cluster that the request has, if any. If the status names a cluster that has lost the finalizer, the finalizer is added again.
// If the status names none, a finalizer counts only on a cluster in a namespace that the definition trusts. The definition may be nil.
func (r *Reconciler) held(
	ctx context.Context, definition *ClusterDefinition, request *v1alpha1.ClusterRequest,
) (*v1alpha1.Cluster, error) {
	clusters, err := r.clustersOf(ctx, request)
	if err != nil {
		return nil, err
	}
	known := request.Status.Cluster
	if known == nil {
		clusters = slices.DeleteFunc(clusters, func(c v1alpha1.Cluster) bool {
			return definition == nil || !definition.trusts(c.Namespace, request)
		})
		if len(clusters) == 0 {
			return nil, nil
		}
		slices.SortFunc(clusters, byName)
		return &clusters[0], nil
	}
	// A request can have more than one only if two processes decided concurrently.
	for i := range clusters {
		if client.ObjectKeyFromObject(&clusters[i]) != known.NamespacedName() {
			if err := r.free(ctx, request, &clusters[i]); err != nil {
				return nil, err
			}
		}
	}
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, known.NamespacedName(), cluster); err != nil {
		return nil, kit.IgnoreGone(err)
	}
	if slices.Contains(cluster.Finalizers, request.FinalizerForCluster()) || cluster.DeletionTimestamp != nil {
		return cluster, nil // finalizers cannot be added during a deletion
	}
	if cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		if err := r.onlyStale(ctx, request, cluster); err != nil {
			return nil, err
		}
	}
	return cluster, r.take(ctx, request, cluster)
}

func byName(a, b v1alpha1.Cluster) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// choose returns the shared cluster for the request, or nil.
func (r *Reconciler) choose(
	ctx context.Context, config *Config, definition *ClusterDefinition, request *v1alpha1.ClusterRequest,
) (*v1alpha1.Cluster, error) {
	clusters := &v1alpha1.ClusterList{}
	err := r.client.List(ctx, clusters, client.MatchingFields{purposeIndex: definition.purpose}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	candidates := slices.DeleteFunc(clusters.Items, func(c v1alpha1.Cluster) bool {
		return !definition.trusts(c.Namespace, request) || !definition.hasCapacity(&c)
	})
	if len(candidates) == 0 {
		return nil, nil
	}
	slices.SortFunc(candidates, byName)
	chosen := 0
	switch config.Strategy {
	case StrategyRandom:
		chosen = r.pick(len(candidates))
	case StrategyBalanced:
		for i := range candidates {
			if candidates[i].GetTenancyCount() < candidates[chosen].GetTenancyCount() {
				chosen = i
			}
		}
	}
	return candidates[chosen].DeepCopy(), nil
}

// hasCapacity reports whether a cluster matches the definition, and can be given to one more request.
func (d *ClusterDefinition) hasCapacity(c *v1alpha1.Cluster) bool {
	return d.fits(c) && c.DeletionTimestamp == nil && d.clusters.Matches(labels.Set(c.Labels)) &&
		(d.TenancyCount == 0 || c.GetTenancyCount() < d.TenancyCount)
}

func (d *ClusterDefinition) fits(c *v1alpha1.Cluster) bool {
	return c.Spec.Tenancy == d.Template.Spec.Tenancy && c.Spec.Profile == d.Template.Spec.Profile
}

// take gives the request a cluster, which must be as it was read.
func (r *Reconciler) take(ctx context.Context, request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) error {
	return r.patch(ctx, cluster, func(c *v1alpha1.Cluster) { hold(request, c) }, request.FinalizerForCluster())
}

// hold marks a cluster as one that the request has. Other finalizers on an exclusive one are of requests that are gone.
func hold(request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) {
	if cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		cluster.Finalizers = slices.DeleteFunc(cluster.Finalizers, func(f string) bool {
			return strings.HasPrefix(f, v1alpha1.RequestFinalizerOnClusterPrefix)
		})
	}
	controllerutil.AddFinalizer(cluster, request.FinalizerForCluster())
	propagated(request, cluster)
}

// propagate adds the metadata of the request to its cluster.
func (r *Reconciler) propagate(ctx context.Context, request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) error {
	if cluster.DeletionTimestamp != nil {
		return nil
	}
	return r.patch(ctx, cluster, func(c *v1alpha1.Cluster) { propagated(request, c) }, "")
}

// patch changes a cluster that is still as it was read, and waits until the cache shows it with a finalizer.
func (r *Reconciler) patch(ctx context.Context, cluster *v1alpha1.Cluster, change func(*v1alpha1.Cluster), finalizer string) error {
	if changed, err := kit.Patch(ctx, r.client, cluster, change); err != nil || !changed || finalizer == "" {
		return err
	}
	return r.awaitCache(ctx, cluster, finalizer)
}

func (r *Reconciler) awaitCache(ctx context.Context, cluster *v1alpha1.Cluster, finalizer string) error {
	cached := &v1alpha1.Cluster{}
	return wait.PollUntilContextTimeout(ctx, cacheTimeout/2000, cacheTimeout, true, func(ctx context.Context) (bool, error) {
		err := r.client.Get(ctx, client.ObjectKeyFromObject(cluster), cached)
		return err == nil && slices.Contains(cached.Finalizers, finalizer), kit.IgnoreGone(err)
	})
}

// propagated copies labels and annotations for clusters from a request to a cluster that is exclusive to it.
func propagated(request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) {
	if cluster.Spec.Tenancy != v1alpha1.TENANCY_EXCLUSIVE {
		return
	}
	cluster.Labels = withPrefixed(cluster.Labels, request.Labels)
	cluster.Annotations = withPrefixed(cluster.Annotations, request.Annotations)
}

func withPrefixed(into, from map[string]string) map[string]string {
	for key, value := range from {
		if strings.HasPrefix(key, v1alpha1.MetadataAnnotationLabelPrefix) {
			if into == nil {
				into = map[string]string{}
			}
			into[key] = value
		}
	}
	return into
}

func (d *ClusterDefinition) namespaceFor(request *v1alpha1.ClusterRequest) string {
	return cmp.Or(d.Template.Metadata.Namespace, request.Namespace)
}

// newCluster returns the new cluster for the request, with its previous name if that is known.
func (d *ClusterDefinition) newCluster(request *v1alpha1.ClusterRequest, known *v1alpha1.ObjectReference) *v1alpha1.Cluster {
	template := d.Template.Metadata
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace:   d.namespaceFor(request),
		Labels:      map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "true"},
		Annotations: maps.Clone(template.Annotations),
		Finalizers:  []string{request.FinalizerForCluster()},
	}}
	d.Template.Spec.DeepCopyInto(&cluster.Spec)
	maps.Copy(cluster.Labels, template.Labels)
	if !slices.Contains(cluster.Spec.Purposes, d.purpose) {
		cluster.Spec.Purposes = append(cluster.Spec.Purposes, d.purpose)
	}
	propagated(request, cluster)

	prefix := template.GenerateName
	unlimited := d.Template.Spec.Tenancy == v1alpha1.TENANCY_SHARED && d.TenancyCount == 0
	switch {
	case known != nil:
		cluster.Namespace, cluster.Name = known.Namespace, known.Name
		return cluster
	case unlimited && prefix == "":
		cluster.Name = cmp.Or(template.Name, d.purpose)
		return cluster
	case prefix == "":
		prefix = d.purpose + "-"
	}
	if request.Labels[v1alpha1.RandomizeClusterNameLabel] == "true" {
		cluster.GenerateName = prefix
	} else {
		cluster.Name = prefix + namehash.NameHash(request.Namespace, request.Name)
	}
	return cluster
}

// mayName reports whether a new cluster of the definition may have a name, as far as that is known without a request.
func (d *ClusterDefinition) mayName(name string) bool {
	template := d.Template.Metadata
	return name == template.Name || strings.HasPrefix(name, cmp.Or(template.GenerateName, d.purpose))
}

// create creates a cluster for the request. An existing cluster of the name is adopted, if possible.
func (r *Reconciler) create(
	ctx context.Context, definition *ClusterDefinition, request *v1alpha1.ClusterRequest, known *v1alpha1.ObjectReference,
) (*v1alpha1.Cluster, error) {
	cluster := definition.newCluster(request, known)
	err := r.client.Create(ctx, cluster)
	if err == nil {
		return cluster, r.awaitCache(ctx, cluster, request.FinalizerForCluster())
	}
	if !apierrors.IsAlreadyExists(err) || cluster.Name == "" {
		return nil, fmt.Errorf("creating the cluster: %w", err)
	}
	there := &v1alpha1.Cluster{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), there); err != nil {
		return nil, err
	}
	if err := r.adoptable(ctx, definition, request, there); err != nil {
		return nil, err
	}
	return there, r.patch(ctx, there, func(c *v1alpha1.Cluster) { definition.adopt(request, c, cluster) }, request.FinalizerForCluster())
}

// adoptable returns why a cluster of the name that the request needs cannot be given to it.
func (r *Reconciler) adoptable(ctx context.Context, d *ClusterDefinition, request *v1alpha1.ClusterRequest, there *v1alpha1.Cluster) error {
	key := client.ObjectKeyFromObject(there)
	if there.DeletionTimestamp != nil {
		return kit.Outcomef(reasonWaitingForDeletion, "waits until Cluster %s, which is being deleted, is gone", key)
	}
	if !d.fits(there) {
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists with profile '%s' and tenancy %s, and purpose '%s' "+
			"needs profile '%s' and tenancy %s",
			key, there.Spec.Profile, there.Spec.Tenancy, d.purpose, d.Template.Spec.Profile, d.Template.Spec.Tenancy)
	}
	if d.Template.Spec.Tenancy == v1alpha1.TENANCY_SHARED {
		if d.TenancyCount == 0 || there.GetTenancyCount() < d.TenancyCount {
			return nil
		}
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists and is used by %d requests, which is its limit",
			key, there.GetTenancyCount())
	}
	return r.onlyStale(ctx, request, there)
}

// onlyStale returns an error unless all other requests that have a cluster are gone.
func (r *Reconciler) onlyStale(ctx context.Context, request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) error {
	others := cluster.GetRequestUIDs().Delete(string(request.UID))
	gone, err := r.gone(ctx, others)
	if err == nil && gone.Len() < others.Len() {
		return kit.Outcomef(v1alpha1.ReasonClusterConflict, "cluster '%s' already exists and is used by a different ClusterRequest "+
			"(the '%s' label with value 'true' can be set on the ClusterRequest for an unused name)",
			client.ObjectKeyFromObject(cluster), v1alpha1.RandomizeClusterNameLabel)
	}
	return err
}

// adopt sets the fields of a new cluster on an existing one, except those that it has itself.
func (d *ClusterDefinition) adopt(request *v1alpha1.ClusterRequest, there, made *v1alpha1.Cluster) {
	there.Labels, there.Annotations = merged(made.Labels, there.Labels), merged(made.Annotations, there.Annotations)
	if !slices.Contains(there.Spec.Purposes, d.purpose) {
		there.Spec.Purposes = append(there.Spec.Purposes, d.purpose)
	}
	hold(request, there)
}

// merged returns the entries of both; the second has precedence.
func merged(first, second map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, first)
	maps.Copy(all, second)
	return all
}
