// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

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
func recordEvents(recorder events.EventRecorder, set *workv1alpha1.ManifestWorkReplicaSet, before []metav1.Condition) {
	after := set.Status.Conditions
	conditionevents.RecordFault(recorder, set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, action)
	conditionevents.RecordFault(recorder, set, before, after, conditionAuthorized, action)
	conditionevents.RecordFault(recorder, set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, action)
	conditionevents.Record(recorder, set, before, after, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, action)
}

// unappliedReport is the last event on whether works can be applied.
type unappliedReport struct {
	// checked is false before the first check, and unapplied reports whether some works could not be applied at the last one with an event.
	checked, unapplied bool
	at                 time.Time
}

// update records an event when some works cannot be applied, and one when all can again. It returns the time until the next check, or 0 if none is
// needed. The first check records no event: the hub may have done so before it was restarted.
func (u *unappliedReport) update(recorder events.EventRecorder, set *workv1alpha1.ManifestWorkReplicaSet, clusters []string, now time.Time) time.Duration {
	are := len(clusters) > 0
	switch rest := tellsAgain - now.Sub(u.at); {
	case !u.checked:
		u.checked, u.unapplied = true, are
		return 0
	case u.unapplied == are:
		return 0
	case rest > 0:
		return rest
	case are:
		conditionevents.Note(recorder, set, corev1.EventTypeWarning, eventNotApplied, action, notApplied(clusters))
	default:
		conditionevents.Note(recorder, set, corev1.EventTypeNormal, eventApplied, action, "no cluster reports a work that it cannot apply any more")
	}
	u.unapplied, u.at = are, now
	return 0
}

// notApplied names clusters that could not apply their works. The conditions of the works have the cause.
func notApplied(clusters []string) string {
	return named(clusters) + " could not apply their works: see their ManifestWorks"
}
