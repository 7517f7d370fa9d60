// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubtree

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registration"
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
	n := &Node{Kind: KindCluster, Name: m.Spec.Cluster}
	switch {
	case !m.Status.Accepted:
		n.notAccepted()
	case m.Status.Joined != metav1.ConditionTrue:
		n.because(Progressing, ReasonNotJoined, "its agent has not joined yet")
	default:
		n.State = ofStatus(m.Status.Available)
	}
	return n
}

func (n *Node) notAccepted() {
	n.because(Progressing, ReasonNotAccepted, "the hub does not accept it: kubectl hub accept --clusters "+n.Name)
}

// Cluster returns the node of a cluster.
func Cluster(c *clusterv1.ManagedCluster) *Node {
	n := &Node{Kind: KindCluster, Name: c.Name, Conditions: c.Status.Conditions}
	available := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionAvailable)
	switch {
	case !c.DeletionTimestamp.IsZero():
		n.because(Progressing, ReasonDeleting, "it is being deleted")
		if d := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionDeleting); d != nil {
			n.Message = d.Message
		}
		n.Since = since(*c.DeletionTimestamp)
	case !c.Spec.HubAcceptsClient:
		n.notAccepted()
		if a := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionHubAccepted); a != nil {
			n.Since = since(a.LastTransitionTime)
		}
	case !meta.IsStatusConditionTrue(c.Status.Conditions, registration.ConditionJoined):
		n.because(Progressing, ReasonNotJoined, "its agent has not joined yet")
	case available == nil:
		n.because(Unknown, ReasonNotTold, "its availability has not been reported")
	default:
		n.by(ofStatus(available.Status), available)
	}
	return n
}

// wanted are the conditions of clusters that have one healthy status. Other conditions do not affect health.
var wanted = map[string]metav1.ConditionStatus{
	registration.ConditionHubAccepted:        metav1.ConditionTrue,
	registration.ConditionJoined:             metav1.ConditionTrue,
	registration.ConditionAvailable:          metav1.ConditionTrue,
	registration.ConditionClockSynced:        metav1.ConditionTrue,
	registration.ConditionCertificateRotated: metav1.ConditionTrue,
	registration.ConditionRequestWaits:       metav1.ConditionFalse,
}

// Conditions returns the conditions of a cluster whose healthy status is known.
func Conditions(c *clusterv1.ManagedCluster) (nodes []*Node) {
	for i := range c.Status.Conditions {
		have := &c.Status.Conditions[i]
		want, known := wanted[have.Type]
		if !known {
			continue
		}
		n := &Node{Kind: KindCondition, Name: have.Type}
		switch have.Status {
		case want:
			n.by(Healthy, have)
		case metav1.ConditionUnknown:
			n.by(Unknown, have)
		default:
			n.by(Unhealthy, have)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// leaseDurations is the maximum age of a lease, as a multiple of its duration.
const leaseDurations = 5

// Lease returns the node of the lease that a cluster's agent renews.
func Lease(c *clusterv1.ManagedCluster, lease *coordinationv1.Lease, now time.Time) *Node {
	n := &Node{Kind: KindLease, Name: lease.Name}
	if lease.Spec.RenewTime == nil {
		n.because(Unknown, ReasonNotTold, "the agent has never renewed it")
		return n
	}
	every := time.Duration(c.Spec.LeaseDurationSeconds) * time.Second
	if every == 0 {
		every = time.Minute
	}
	n.State, n.Since = Healthy, &metav1.Time{Time: lease.Spec.RenewTime.Time}
	n.Message = fmt.Sprintf("the agent renews it every %s", every)
	if now.Sub(lease.Spec.RenewTime.Time) > leaseDurations*every {
		n.State, n.Reason = Unknown, registration.ReasonLeaseUpdateStopped
		n.Message = fmt.Sprintf("the agent should renew it every %s", every)
	}
	return n
}

// SetOf returns a set that a cluster is in.
func SetOf(m *viewv1alpha1.ClusterSetMember) *Node {
	selector := m.Status.SelectedBy.Selector
	if selector == "" {
		selector = "every cluster"
	}
	return &Node{Kind: KindSet, Name: m.Spec.ClusterSet, State: Healthy, Message: "selects " + selector}
}

// Namespace returns the namespace of a cluster on the hub, also if it does not exist.
func Namespace(name string, namespace *corev1.Namespace) *Node {
	n := &Node{Kind: KindNamespace, Name: name, State: Healthy}
	switch {
	case namespace == nil:
		n.because(Unhealthy, ReasonNotFound, "the hub creates it when it accepts the cluster")
	case !namespace.DeletionTimestamp.IsZero():
		n.because(Progressing, ReasonDeleting, "it is being deleted")
		n.Since = since(*namespace.DeletionTimestamp)
	default:
		n.Since = since(namespace.CreationTimestamp)
	}
	return n
}

// conditionNamespaceAvailable is True when a namespace that a set requires exists.
const conditionNamespaceAvailable = "NamespaceAvailable"

// ManagedNamespaces returns the namespaces in the cluster that sets require.
func ManagedNamespaces(c *clusterv1.ManagedCluster, cluster NodeState) (nodes []*Node) {
	for i := range c.Status.ManagedNamespaces {
		asked := &c.Status.ManagedNamespaces[i]
		n := &Node{Kind: KindManagedNamespace, Name: asked.Name, Conditions: asked.Conditions}
		if available := meta.FindStatusCondition(asked.Conditions, conditionNamespaceAvailable); available != nil {
			n.by(ofStatus(available.Status), available)
		} else {
			n.because(Unknown, ReasonNotTold, "the set "+asked.ClusterSet+" requests it, but the agent has not reported it yet")
		}
		n.stale(cluster)
		nodes = append(nodes, n)
	}
	return nodes
}

// stale sets the state to Unknown if the node is Healthy and its agent does not respond now.
func (n *Node) stale(cluster NodeState) {
	if n.State == Healthy && cluster != Healthy {
		n.State, n.Reason, n.Message = Unknown, ReasonStale, "it had this state when the agent last reported it"
	}
}

// AccessRequest returns the node of a request for access.
func AccessRequest(r *v1alpha1.AccessRequest) *Node {
	n := &Node{Kind: KindAccessRequest, Namespace: r.Namespace, Name: r.Name, Conditions: r.Status.Conditions}
	state := Progressing
	switch {
	case !r.DeletionTimestamp.IsZero():
		n.because(Progressing, ReasonDeleting, "it is being deleted")
		n.Since = since(*r.DeletionTimestamp)
		return n
	case r.Status.IsGranted() && r.Status.ObservedGeneration == r.Generation:
		n.because(Healthy, r.Status.Phase, "")
		return n
	case r.Status.IsDenied():
		state = Unhealthy
	}
	n.because(state, r.Status.Phase, "the cluster provider has not answered yet")
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Status != metav1.ConditionTrue {
			n.by(state, c)
			break
		}
	}
	return n
}

// Placement returns the node of a placement.
func Placement(p *v1beta1.Placement) *Node {
	n := &Node{Kind: KindPlacement, Namespace: p.Namespace, Name: p.Name, Conditions: p.Status.Conditions}
	misconfigured := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionMisconfigured)
	satisfied := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionSatisfied)
	switch {
	case misconfigured != nil && misconfigured.Status == metav1.ConditionTrue:
		n.by(Unhealthy, misconfigured)
	case satisfied != nil:
		n.by(ofStatus(satisfied.Status), satisfied)
	default:
		n.because(Unknown, ReasonNotTold, "the scheduler has not decided yet")
	}
	return n
}

// Chosen returns a cluster that a placement has chosen. known is nil if the cluster is not known.
func Chosen(name, group string, known *Node) *Node {
	n := &Node{Kind: KindCluster, Name: name}
	if known != nil {
		copied := *known
		n = &copied
	} else {
		n.because(Unknown, ReasonNotSeen, "you may not see the cluster")
	}
	if group != "" && group != "0" {
		n.Message = strings.TrimSuffix("group "+group+": "+n.Message, ": ")
	}
	return n
}
