// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// WorkState returns the status of a condition of a work. It ignores conditions of an earlier generation.
func WorkState(w *workv1.ManifestWork, conditionType string) string {
	c := meta.FindStatusCondition(w.Status.Conditions, conditionType)
	if c == nil || c.ObservedGeneration != w.Generation {
		return string(metav1.ConditionUnknown)
	}
	return string(c.Status)
}

// Fault is a manifest of a work that is not in its desired state.
type Fault struct {
	// Manifest is kind, namespace and name, Is the problem, and Why the message.
	Manifest, Is, Why string
	Since             metav1.Time
}

// String returns the fault in one line.
func (f Fault) String() string { return f.Manifest + " is " + f.Is + after(": ", f.Why) }

// Faults returns the faults that the agent reports for the current generation of the work.
func Faults(w *workv1.ManifestWork) (all []Fault) {
	for i := range w.Status.ResourceStatus.Manifests {
		m := &w.Status.ResourceStatus.Manifests[i]
		for _, wanted := range []struct{ condition, is string }{
			{workv1.ManifestApplied, "not applied"}, {workv1.ManifestAvailable, "not available"}, {workv1.ManifestDegraded, "degraded"},
		} {
			c := meta.FindStatusCondition(m.Conditions, wanted.condition)
			bad := metav1.ConditionFalse
			if wanted.condition == workv1.ManifestDegraded {
				bad = metav1.ConditionTrue
			}
			if c != nil && c.Status == bad {
				all = append(all, Fault{ManifestName(&m.ResourceMeta), wanted.is, c.Message, c.LastTransitionTime})
				break
			}
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
		return "manifest " + strconv.Itoa(int(m.Ordinal)) + after(" ", name)
	}
	return m.Kind + " " + name
}
