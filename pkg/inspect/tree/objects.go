// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// The kinds of nodes.
const (
	KindCluster          = "ManagedCluster"
	KindSet              = "ManagedClusterSet"
	KindWork             = "ManifestWork"
	KindManifest         = "Manifest"
	KindCondition        = "Condition"
	KindNamespace        = "Namespace"
	KindManagedNamespace = "ManagedNamespace"
	KindLease            = "Lease"
	KindAccessRequest    = "AccessRequest"
	KindReplicaSet       = "ManifestWorkReplicaSet"
	KindPlacement        = "Placement"
)

// Member returns the cluster of a member of a set, with the state that members have.
func Member(m *viewv1alpha1.ClusterSetMember) *Node {
	return &Node{Kind: KindCluster, Name: m.Spec.Cluster, Health: inspect.Member(m)}
}

// Cluster returns the node of a cluster.
func Cluster(c *clusterv1.ManagedCluster) *Node {
	return &Node{Kind: KindCluster, Name: c.Name, Health: inspect.Cluster(c), Conditions: c.Status.Conditions}
}

// Conditions returns the conditions of a cluster whose healthy status is known.
func Conditions(c *clusterv1.ManagedCluster) (nodes []*Node) {
	for i := range c.Status.Conditions {
		have := &c.Status.Conditions[i]
		if h, known := inspect.ClusterCondition(have); known {
			nodes = append(nodes, &Node{Kind: KindCondition, Name: have.Type, Health: h})
		}
	}
	return nodes
}

// Lease returns the node of the lease that a cluster's agent renews.
func Lease(c *clusterv1.ManagedCluster, lease *coordinationv1.Lease, now time.Time) *Node {
	return &Node{Kind: KindLease, Name: lease.Name, Health: inspect.Lease(c, lease, now)}
}

// SetOf returns a set that a cluster is in.
func SetOf(m *viewv1alpha1.ClusterSetMember) *Node {
	selector := m.Status.SelectedBy.Selector
	if selector == "" {
		selector = "every cluster"
	}
	return &Node{Kind: KindSet, Name: m.Spec.ClusterSet, Health: inspect.Because(inspect.Healthy, "", "selects "+selector)}
}

// Namespace returns the namespace of a cluster on the hub, also if it does not exist.
func Namespace(name string, namespace *corev1.Namespace) *Node {
	return &Node{Kind: KindNamespace, Name: name, Health: inspect.Namespace(namespace)}
}

// ManagedNamespaces returns the namespaces in the cluster that sets require.
func ManagedNamespaces(c *clusterv1.ManagedCluster, cluster inspect.HealthState) (nodes []*Node) {
	for i := range c.Status.ManagedNamespaces {
		n := &c.Status.ManagedNamespaces[i]
		nodes = append(nodes, &Node{Kind: KindManagedNamespace, Name: n.Name, Health: inspect.ManagedNamespace(n).Of(cluster), Conditions: n.Conditions})
	}
	return nodes
}

// Work returns a work on a cluster of that state, with its manifests.
func Work(w *workv1.ManifestWork, cluster inspect.HealthState) *Node {
	h := inspect.Work(w)
	n := &Node{Kind: KindWork, Namespace: w.Namespace, Name: w.Name, Health: h.Of(cluster), Conditions: w.Status.Conditions}
	if h.Reason == inspect.ReasonNotTold {
		cluster = inspect.Unknown // the status of the manifests is of an earlier spec
	}
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		n.Add(&Node{Kind: KindManifest, Name: strings.TrimPrefix(inspect.ManifestName(&m.ResourceMeta), "manifest "), Health: inspect.Manifest(m).Of(cluster),
			Conditions: m.Conditions})
	}
	return n
}

// ReplicaSet returns the node of a ManifestWorkReplicaSet.
func ReplicaSet(r *workv1alpha1.ManifestWorkReplicaSet) *Node {
	return &Node{Kind: KindReplicaSet, Namespace: r.Namespace, Name: r.Name, Health: inspect.ReplicaSet(r), Conditions: r.Status.Conditions}
}

// AccessRequest returns the node of a request for access.
func AccessRequest(r *v1alpha1.AccessRequest) *Node {
	return &Node{Kind: KindAccessRequest, Namespace: r.Namespace, Name: r.Name, Health: inspect.AccessRequest(r), Conditions: r.Status.Conditions}
}

// Placement returns the node of a placement.
func Placement(p *v1beta1.Placement) *Node {
	return &Node{Kind: KindPlacement, Namespace: p.Namespace, Name: p.Name, Health: inspect.Placement(p), Conditions: p.Status.Conditions}
}

// Chosen returns a cluster that a placement has chosen. known is nil if the cluster is not known.
func Chosen(name, group string, known *Node) *Node {
	n := &Node{Kind: KindCluster, Name: name}
	if known != nil {
		copied := *known
		n = &copied
	} else {
		n.Health = inspect.Because(inspect.Unknown, inspect.ReasonNotSeen, "you may not see the cluster")
	}
	if group != "" && group != "0" {
		n.Message = strings.TrimSuffix("group "+group+": "+n.Message, ": ")
	}
	return n
}
