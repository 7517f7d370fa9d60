// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect judges one object by its own status: whether it is healthy, which condition decides that, and whether what is known of it is stale.
// It is pure: it takes objects and returns states. Commands, the page and diagnoses have the same rules from here.
//
// An object is only Healthy if it was observed to be: one without a status of its agent is Unknown, and so is one whose status is about an earlier
// spec.
package inspect

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HealthState is the state of an object.
type HealthState string

// The states, the best first.
const (
	Healthy HealthState = "Healthy"
	// Progressing: it is in progress, or waits for a decision.
	Progressing HealthState = "Progressing"
	// Unknown: it could not be read, or has no current status.
	Unknown   HealthState = "Unknown"
	Unhealthy HealthState = "Unhealthy"
)

var byBadness = []HealthState{Healthy, Progressing, Unknown, Unhealthy}

// Badness returns the position of a state from the best to the worst.
func (s HealthState) Badness() int { return slices.Index(byBadness, s) }

// The reasons that are not those of conditions.
const (
	// ReasonNotAccepted: the hub has not accepted the cluster.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotJoined: the agent of the cluster has no identity on the hub yet.
	ReasonNotJoined = "NotJoined"
	// ReasonDeleting: the object is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonNotTold: the agent has not reported the current generation of the object.
	ReasonNotTold = "NotTold"
	// ReasonStale: the object was healthy in the last report of its agent, which does not respond now.
	ReasonStale = "Stale"
	// ReasonNotSeen: the user may not see the object.
	ReasonNotSeen = "NotSeen"
	// ReasonNotFound: there is no such object.
	ReasonNotFound = "NotFound"
)

// Health is the state of an object, and what determines it.
type Health struct {
	State HealthState `json:"state"`
	// Reason, Message and Since are those of the condition that determines the state.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Since   *metav1.Time `json:"since,omitempty"`
}

// Because returns a state with a reason and message that are not those of a condition.
func Because(state HealthState, reason, message string) Health {
	return Health{State: state, Reason: reason, Message: message}
}

// FromCondition returns a state with the reason and message of a condition.
func FromCondition(state HealthState, c *metav1.Condition) Health {
	return Health{State: state, Reason: c.Reason, Message: c.Message, Since: since(c.LastTransitionTime)}
}

// at returns the health with the time since when it holds.
func (h Health) at(t metav1.Time) Health {
	h.Since = since(t)
	return h
}

// Of returns the health of an object on a cluster: if its agent does not respond now, it is not known to be Healthy.
func (h Health) Of(cluster HealthState) Health {
	if h.State == Healthy && cluster != Healthy {
		h.State, h.Reason, h.Message = Unknown, ReasonStale, "it had this state when the agent last reported it"
	}
	return h
}

func since(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// deleting returns the health of an object that is being deleted.
func deleting(m *metav1.ObjectMeta, message string) Health {
	return Because(Progressing, ReasonDeleting, message).at(*m.DeletionTimestamp)
}

// FromStatus returns the state of an object that is healthy if a condition is True.
func FromStatus(status metav1.ConditionStatus) HealthState {
	switch status {
	case metav1.ConditionTrue:
		return Healthy
	case metav1.ConditionFalse:
		return Unhealthy
	}
	return Unknown
}

// Status returns the status of a condition, or Unknown if the condition is not set.
func Status(conditions []metav1.Condition, conditionType string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// Current returns the condition of the current generation of an object, or nil. What was observed of an earlier spec is not known of this one.
func Current(conditions []metav1.Condition, conditionType string, generation int64) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil && c.ObservedGeneration == generation {
		return c
	}
	return nil
}
