// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// hasCapacity reports whether a cluster matches the definition, and can be given to one more request.
func (d *ClusterDefinition) hasCapacity(c *v1alpha1.Cluster) bool {
	return d.fits(c) && c.DeletionTimestamp == nil && d.clusters.Matches(labels.Set(c.Labels)) &&
		(d.TenancyCount == 0 || c.GetTenancyCount() < d.TenancyCount)
}

func (d *ClusterDefinition) fits(c *v1alpha1.Cluster) bool {
	return c.Spec.Tenancy == d.Template.Spec.Tenancy && c.Spec.Profile == d.Template.Spec.Profile
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

// adopt sets the fields of a new cluster on an existing one, except those that it has itself.
func (d *ClusterDefinition) adopt(request *v1alpha1.ClusterRequest, existing, created *v1alpha1.Cluster) {
	existing.Labels, existing.Annotations = merged(created.Labels, existing.Labels), merged(created.Annotations, existing.Annotations)
	if !slices.Contains(existing.Spec.Purposes, d.purpose) {
		existing.Spec.Purposes = append(existing.Spec.Purposes, d.purpose)
	}
	markHeld(request, existing)
}

// merged returns the entries of both; the second has precedence.
func merged(first, second map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, first)
	maps.Copy(all, second)
	return all
}

// markHeld marks a cluster as one that the request has. Other finalizers on an exclusive one are of requests that are gone.
func markHeld(request *v1alpha1.ClusterRequest, cluster *v1alpha1.Cluster) {
	if cluster.Spec.Tenancy == v1alpha1.TENANCY_EXCLUSIVE {
		cluster.Finalizers = slices.DeleteFunc(cluster.Finalizers, func(f string) bool {
			return strings.HasPrefix(f, v1alpha1.RequestFinalizerOnClusterPrefix)
		})
	}
	controllerutil.AddFinalizer(cluster, request.FinalizerForCluster())
	propagated(request, cluster)
}

func byName(a, b v1alpha1.Cluster) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
