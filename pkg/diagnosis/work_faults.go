// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// WorkState is that of a condition of a work. What was said of an older spec says nothing of this one.
func WorkState(w *workv1.ManifestWork, conditionType string) string {
	c := meta.FindStatusCondition(w.Status.Conditions, conditionType)
	if c == nil || c.ObservedGeneration != w.Generation {
		return string(metav1.ConditionUnknown)
	}
	return string(c.Status)
}

// Fault is a manifest of a work that is not as it is wanted.
type Fault struct {
	// Manifest is kind, namespace and name, Is what it is, and Why what was said.
	Manifest, Is, Why string
	Since             metav1.Time
}

// String is it in a line.
func (f Fault) String() string { return f.Manifest + " is " + f.Is + after(": ", f.Why) }

// Faults are those that the agent tells of the work as it is now.
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

// ManifestName is the kind of an object of a work, with its namespace and name.
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
