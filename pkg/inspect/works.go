// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// WorkState returns the status of a condition of a work. It ignores conditions of an earlier generation.
func WorkState(w *workv1.ManifestWork, conditionType string) string {
	if c := Current(w.Status.Conditions, conditionType, w.Generation); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}

// Work returns the health of a work, as its agent last reported it.
func Work(w *workv1.ManifestWork) Health {
	if !w.DeletionTimestamp.IsZero() {
		message := "it is being deleted"
		if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDeleting); c != nil {
			message = c.Message
		}
		return deleting(&w.ObjectMeta, message)
	}
	var decides *metav1.Condition
	for _, conditionType := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := Current(w.Status.Conditions, conditionType, w.Generation)
		if c == nil {
			return Because(Unknown, ReasonNotTold, "its agent has not reported it yet").at(w.CreationTimestamp)
		}
		if decides == nil || FromStatus(c.Status).Badness() > FromStatus(decides.Status).Badness() {
			decides = c
		}
	}
	h := FromCondition(FromStatus(decides.Status), decides)
	if h.State != Healthy {
		return h
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDegraded); c != nil && c.Status == metav1.ConditionTrue {
		return FromCondition(Unhealthy, c)
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkProgressing); c != nil && c.Status == metav1.ConditionTrue {
		return FromCondition(Progressing, c)
	}
	h.Message = fmt.Sprintf("%d manifests", len(w.Spec.Workload.Manifests))
	if len(w.Spec.Workload.Manifests) == 1 {
		h.Message = "1 manifest"
	}
	return h
}

// faults are the conditions of manifests that report a fault with a status, the most important first.
var faults = []struct {
	condition string
	bad       metav1.ConditionStatus
	is        string
}{
	{workv1.ManifestApplied, metav1.ConditionFalse, "not applied"},
	{workv1.ManifestAvailable, metav1.ConditionFalse, "not available"},
	{workv1.ManifestDegraded, metav1.ConditionTrue, "degraded"},
}

// faultOf returns the most important fault of a manifest and the condition that reports it, or nil.
func faultOf(m *workv1.ManifestCondition) (is string, c *metav1.Condition) {
	for _, f := range faults {
		if c := meta.FindStatusCondition(m.Conditions, f.condition); c != nil && c.Status == f.bad {
			return f.is, c
		}
	}
	return "", nil
}

// Manifest returns the health of an object of a work, as the agent last reported it.
func Manifest(m *workv1.ManifestCondition) (h Health) {
	if _, c := faultOf(m); c != nil {
		return FromCondition(Unhealthy, c)
	}
	for _, conditionType := range []string{workv1.ManifestApplied, workv1.ManifestAvailable} {
		c := meta.FindStatusCondition(m.Conditions, conditionType)
		if c == nil {
			return Because(Unknown, ReasonNotTold, "its agent has not reported the condition "+conditionType)
		}
		h = FromCondition(FromStatus(c.Status), c)
		if h.State != Healthy {
			return h
		}
	}
	return h
}

// Fault is a manifest of a work that is not in its desired state.
type Fault struct {
	// Manifest is kind, namespace and name, Is the problem, and Why the message.
	Manifest, Is, Why string
	Since             metav1.Time
}

// String returns the fault in one line.
func (f Fault) String() string { return f.Manifest + " is " + f.Is + because(f.Why) }

// because returns a message to append to a sentence.
func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// Faults returns the faults that the agent reports for the current generation of the work.
func Faults(w *workv1.ManifestWork) (all []Fault) {
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		if is, c := faultOf(m); c != nil {
			all = append(all, Fault{ManifestName(&m.ResourceMeta), is, c.Message, c.LastTransitionTime})
		}
	}
	return all
}

// ManifestName returns the kind, namespace and name of an object of a work.
func ManifestName(m *workv1.ManifestResourceMeta) string {
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + name
	}
	if m.Kind == "" {
		return strings.TrimSpace("manifest " + strconv.Itoa(int(m.Ordinal)) + " " + name)
	}
	return m.Kind + " " + name
}

// IsDone reports whether the objects of a work exist and are available, and if not, what is missing.
func IsDone(w *workv1.ManifestWork) (done bool, missing string) {
	if !w.DeletionTimestamp.IsZero() {
		if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDeleting); c != nil {
			return false, strings.TrimPrefix(c.Message, "ManifestWork ")
		}
		return false, "is being deleted"
	}
	applied, available := WorkState(w, workv1.WorkApplied), WorkState(w, workv1.WorkAvailable)
	if applied == "True" && available == "True" {
		return true, ""
	}
	if all := Faults(w); len(all) > 0 {
		return false, all[0].String()
	}
	if applied == "Unknown" || available == "Unknown" {
		return false, "its agent has not reported it yet"
	}
	if applied != "True" {
		return false, "not applied" + messageOf(w, workv1.WorkApplied)
	}
	return false, "not available" + messageOf(w, workv1.WorkAvailable)
}

func messageOf(w *workv1.ManifestWork, conditionType string) string {
	if c := meta.FindStatusCondition(w.Status.Conditions, conditionType); c != nil {
		return because(c.Message)
	}
	return ""
}

// ReplicaSet returns the health of a ManifestWorkReplicaSet, which creates works for the clusters of placements.
func ReplicaSet(r *workv1alpha1.ManifestWorkReplicaSet) (h Health) {
	if !r.DeletionTimestamp.IsZero() {
		return deleting(&r.ObjectMeta, "it is being deleted")
	}
	for _, step := range []struct {
		condition string
		otherwise HealthState
	}{
		{workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, Unhealthy},
		{workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, Progressing},
		{workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, Progressing},
	} {
		c := Current(r.Status.Conditions, step.condition, r.Generation)
		switch {
		case c == nil:
			return Because(Unknown, ReasonNotTold, "the hub has not reported "+step.condition+" yet")
		case c.Status != metav1.ConditionTrue:
			h = FromCondition(step.otherwise, c)
			if r.Status.Summary.Degraded > 0 {
				h.State = Unhealthy
			}
			return h
		}
		h = FromCondition(Healthy, c)
	}
	h.Message = fmt.Sprintf("%d works", r.Status.Summary.Total)
	return h
}

// IsRolledOut reports whether the current spec of a ManifestWorkReplicaSet is rolled out, and if not, why.
func IsRolledOut(r *workv1alpha1.ManifestWorkReplicaSet) (done bool, why string) {
	c := Current(r.Status.Conditions, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, r.Generation)
	switch {
	case !r.DeletionTimestamp.IsZero():
		return false, "it is being deleted"
	case c == nil:
		return false, "the hub has not observed the current spec yet"
	case c.Status == metav1.ConditionTrue:
		return true, ""
	}
	why = c.Message
	if a := Current(r.Status.Conditions, "Authorized", r.Generation); a != nil && a.Status == metav1.ConditionFalse {
		why = strings.TrimSuffix(why+"; "+a.Message, "; ")
	}
	return false, why
}
