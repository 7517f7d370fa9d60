// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// tell makes events of what has changed in the status of the set, which has been written. How many works are under way changes all the time.
func (r *round) tell(before []metav1.Condition) {
	const action = "RollOut"
	after := r.set.Status.Conditions
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, conditionAuthorized, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, action)
	conditionevents.Record(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, action)
}
