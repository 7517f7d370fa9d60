// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

const action = "RollOut"

const (
	eventNotApplied = "WorksNotApplied" // the agents of some clusters could not apply their works
	eventApplied    = "WorksApplied"    // that is over
)

// tellsAgain is after how long it is told again whether works can be applied. Agents say that of their works as often as they like.
const tellsAgain = time.Minute

// tell makes events of what has changed in the status of the set, which has been written. How many works are under way changes all the time.
func (r *round) tell(before []metav1.Condition) {
	after := r.set.Status.Conditions
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, conditionAuthorized, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, action)
	conditionevents.Record(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, action)
}

// tellUnapplied makes an event when some works cannot be applied, and when that is over, and says when to look again; never, if it is zero. The first look
// is no event: the hub may have told it before it was started again.
func (r *round) tellUnapplied() time.Duration {
	m, are := r.memory, len(r.unapplied) > 0
	if m.looked && m.unapplied == are {
		return 0
	}
	if rest := tellsAgain - r.now.Sub(m.told); m.looked && rest > 0 {
		return rest
	}
	if m.looked && are {
		conditionevents.Note(r.recorder, r.set, corev1.EventTypeWarning, eventNotApplied, action, r.notApplied())
	}
	if m.looked && !are {
		conditionevents.Note(r.recorder, r.set, corev1.EventTypeNormal, eventApplied, action, "no cluster says any more that it cannot apply its work")
	}
	if m.looked {
		m.told = r.now
	}
	m.looked, m.unapplied = true, are
	return 0
}

// notApplied names clusters that could not apply their works. Why is in the conditions of these.
func (r *round) notApplied() string {
	return named(r.unapplied) + " could not apply what they got: see their ManifestWorks"
}
