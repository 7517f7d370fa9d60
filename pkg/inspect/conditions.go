// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// clusterConditions are the healthy statuses of the conditions of clusters that have one. Other conditions do not affect health: Deleting, for example,
// is False while a deletion waits for something.
var clusterConditions = map[string]metav1.ConditionStatus{
	registration.ConditionHubAccepted:        metav1.ConditionTrue,
	registration.ConditionJoined:             metav1.ConditionTrue,
	registration.ConditionAvailable:          metav1.ConditionTrue,
	registration.ConditionClockSynced:        metav1.ConditionTrue,
	registration.ConditionCertificateRotated: metav1.ConditionTrue,
	registration.ConditionRequestWaits:       metav1.ConditionFalse,
}

// otherConditions are those of other kinds.
var otherConditions = map[string]metav1.ConditionStatus{
	v1beta1.ClusterSetBindingBoundType:      metav1.ConditionTrue,
	v1beta1.PlacementConditionSatisfied:     metav1.ConditionTrue,
	v1beta1.PlacementConditionMisconfigured: metav1.ConditionFalse,

	workv1.WorkApplied:   metav1.ConditionTrue,
	workv1.WorkAvailable: metav1.ConditionTrue,
	workv1.WorkComplete:  metav1.ConditionTrue,
	workv1.WorkDegraded:  metav1.ConditionFalse,

	workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified:   metav1.ConditionTrue,
	workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut:  metav1.ConditionTrue,
	workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied: metav1.ConditionTrue,

	openmcpv1alpha1.ConditionPrepared: metav1.ConditionTrue,
	// Cluster providers define these.
	"AccessReady": metav1.ConditionTrue,
	"Denied":      metav1.ConditionFalse,
	"RolesFound":  metav1.ConditionTrue,
}

// ClusterCondition returns what a condition says about the health of its cluster. It reports whether it says anything.
func ClusterCondition(c *metav1.Condition) (Health, bool) { return ofCondition(c, clusterConditions) }

// Condition returns what a condition of any object says about its health. It reports whether it says anything.
func Condition(c *metav1.Condition) (Health, bool) {
	if h, known := ClusterCondition(c); known {
		return h, true
	}
	return ofCondition(c, otherConditions)
}

func ofCondition(c *metav1.Condition, good map[string]metav1.ConditionStatus) (Health, bool) {
	want, known := good[c.Type]
	switch {
	case !known:
		return Health{}, false
	case c.Status == want:
		return FromCondition(Healthy, c), true
	case c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse:
		return FromCondition(Unhealthy, c), true
	}
	return FromCondition(Unknown, c), true
}
