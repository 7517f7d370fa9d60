// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func notAccepted(name string) Health {
	return Because(Progressing, ReasonNotAccepted, "the hub does not accept it: kubectl hub accept --clusters "+name)
}

func notJoined() Health { return Because(Progressing, ReasonNotJoined, "its agent has not joined yet") }

// Cluster returns the health of a cluster.
func Cluster(c *clusterv1.ManagedCluster) Health {
	available := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionAvailable)
	switch {
	case !c.DeletionTimestamp.IsZero():
		message := "it is being deleted"
		if d := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionDeleting); d != nil {
			message = d.Message
		}
		return deleting(&c.ObjectMeta, message)
	case !c.Spec.HubAcceptsClient:
		h := notAccepted(c.Name)
		if a := meta.FindStatusCondition(c.Status.Conditions, registration.ConditionHubAccepted); a != nil {
			h = h.at(a.LastTransitionTime)
		}
		return h
	case !meta.IsStatusConditionTrue(c.Status.Conditions, registration.ConditionJoined):
		return notJoined()
	case available == nil:
		return Because(Unknown, ReasonNotTold, "its availability has not been reported")
	}
	return FromCondition(FromStatus(available.Status), available)
}

// Member returns the health of a cluster, as far as members of sets have it.
func Member(m *viewv1alpha1.ClusterSetMember) Health {
	switch {
	case !m.Status.Accepted:
		return notAccepted(m.Spec.Cluster)
	case m.Status.Joined != metav1.ConditionTrue:
		return notJoined()
	}
	return Health{State: FromStatus(m.Status.Available)}
}

// LeaseGracePeriod returns how old the lease of a cluster may be before its agent is considered lost.
func LeaseGracePeriod(c *clusterv1.ManagedCluster) time.Duration {
	return registration.LeaseGracePeriod(registration.LeaseDuration(c.Spec.LeaseDurationSeconds))
}

// Lease returns the health of the lease that a cluster's agent renews.
func Lease(c *clusterv1.ManagedCluster, lease *coordinationv1.Lease, now time.Time) Health {
	if lease.Spec.RenewTime == nil {
		return Because(Unknown, ReasonNotTold, "the agent has never renewed it")
	}
	interval := registration.LeaseDuration(c.Spec.LeaseDurationSeconds)
	h := Because(Healthy, "", fmt.Sprintf("the agent renews it every %s", interval))
	if now.Sub(lease.Spec.RenewTime.Time) > LeaseGracePeriod(c) {
		h = Because(Unknown, registration.ReasonLeaseUpdateStopped, fmt.Sprintf("the agent should renew it every %s", interval))
	}
	h.Since = &metav1.Time{Time: lease.Spec.RenewTime.Time}
	return h
}

// Namespace returns the health of the namespace of a cluster on the hub, which is nil if it does not exist.
func Namespace(n *corev1.Namespace) Health {
	switch {
	case n == nil:
		return Because(Unhealthy, ReasonNotFound, "the hub creates it when it accepts the cluster")
	case !n.DeletionTimestamp.IsZero():
		return deleting(&n.ObjectMeta, "it is being deleted")
	}
	return Health{State: Healthy}.at(n.CreationTimestamp)
}

// conditionNamespaceAvailable is True when a namespace that a set requires exists.
const conditionNamespaceAvailable = "NamespaceAvailable"

// ManagedNamespace returns the health of a namespace in a cluster that a set requires, as the agent last reported it.
func ManagedNamespace(n *clusterv1.ClusterSetManagedNamespaceConfig) Health {
	if available := meta.FindStatusCondition(n.Conditions, conditionNamespaceAvailable); available != nil {
		return FromCondition(FromStatus(available.Status), available)
	}
	return Because(Unknown, ReasonNotTold, "the set "+n.ClusterSet+" requests it, but the agent has not reported it yet")
}
