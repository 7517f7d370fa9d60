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
	eventApplied    = "WorksApplied"    // no agent reports that any more
)

// tellsAgain is the shortest interval between two events on whether works can be applied. Agents may report that as often as they like.
const tellsAgain = time.Minute

// recordEvents records events for the changes in the status of the set, which has been written. The number of works in progress is no reason for an event,
// since it changes all the time.
func (r *round) recordEvents(before []metav1.Condition) {
	after := r.set.Status.Conditions
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, conditionAuthorized, action)
	conditionevents.RecordFault(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, action)
	conditionevents.Record(r.recorder, r.set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, action)
}

// tellUnapplied records an event when some works cannot be applied, and one when all can again. It returns the time until the next check, or 0 if
// none is needed. The first check records no event: the hub may have done so before it was restarted.
func (r *round) tellUnapplied() time.Duration {
	m, are := r.memory, len(r.unapplied) > 0
	if m.checked && m.unapplied == are {
		return 0
	}
	if rest := tellsAgain - r.now.Sub(m.reportedAt); m.checked && rest > 0 {
		return rest
	}
	if m.checked && are {
		conditionevents.Note(r.recorder, r.set, corev1.EventTypeWarning, eventNotApplied, action, r.notApplied())
	}
	if m.checked && !are {
		conditionevents.Note(r.recorder, r.set, corev1.EventTypeNormal, eventApplied, action, "no cluster reports a work that it cannot apply any more")
	}
	if m.checked {
		m.reportedAt = r.now
	}
	m.checked, m.unapplied = true, are
	return 0
}

// notApplied names clusters that could not apply their works. The conditions of the works have the cause.
func (r *round) notApplied() string {
	return named(r.unapplied) + " could not apply their works: see their ManifestWorks"
}
