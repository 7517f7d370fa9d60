// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubtree

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// Work returns a work on a cluster of that state, with its manifests.
func Work(w *workv1.ManifestWork, cluster NodeState) *Node {
	n := &Node{Kind: KindWork, Namespace: w.Namespace, Name: w.Name, Conditions: w.Status.Conditions}
	n.workState(w)
	silent := cluster
	if n.Reason == ReasonNotTold {
		silent = Unknown // the status of the manifests is of an earlier spec
	}
	for i := range w.Status.ResourceStatus.Manifests {
		child := manifest(&w.Status.ResourceStatus.Manifests[i])
		child.stale(silent)
		n.Add(child)
	}
	n.stale(cluster)
	return n
}

func (n *Node) workState(w *workv1.ManifestWork) {
	if !w.DeletionTimestamp.IsZero() {
		n.because(Progressing, ReasonDeleting, "it is being deleted")
		if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDeleting); c != nil {
			n.Message = c.Message
		}
		n.Since = since(*w.DeletionTimestamp)
		return
	}
	var decides *metav1.Condition
	for _, conditionType := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := meta.FindStatusCondition(w.Status.Conditions, conditionType)
		if c == nil || c.ObservedGeneration != w.Generation {
			n.because(Unknown, ReasonNotTold, "its agent has not reported it yet")
			n.Since = since(w.CreationTimestamp)
			return
		}
		if decides == nil || badness(ofStatus(c.Status)) > badness(ofStatus(decides.Status)) {
			decides = c
		}
	}
	n.by(ofStatus(decides.Status), decides)
	if n.State != Healthy {
		return
	}
	n.Message = fmt.Sprintf("%d manifests", len(w.Spec.Workload.Manifests))
	if len(w.Spec.Workload.Manifests) == 1 {
		n.Message = "1 manifest"
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkDegraded); c != nil && c.Status == metav1.ConditionTrue {
		n.by(Unhealthy, c)
	} else if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkProgressing); c != nil && c.Status == metav1.ConditionTrue {
		n.by(Progressing, c)
	}
}

func manifest(m *workv1.ManifestCondition) *Node {
	n := &Node{Kind: KindManifest, Name: manifestName(&m.ResourceMeta), Conditions: m.Conditions}
	for _, should := range []struct {
		condition string
		bad       metav1.ConditionStatus
	}{{workv1.ManifestApplied, metav1.ConditionFalse}, {workv1.ManifestAvailable, metav1.ConditionFalse}, {workv1.ManifestDegraded, metav1.ConditionTrue}} {
		if c := meta.FindStatusCondition(m.Conditions, should.condition); c != nil && c.Status == should.bad {
			n.by(Unhealthy, c)
			return n
		}
	}
	for _, conditionType := range []string{workv1.ManifestApplied, workv1.ManifestAvailable} {
		c := meta.FindStatusCondition(m.Conditions, conditionType)
		if c == nil {
			n.because(Unknown, ReasonNotTold, "its agent has not reported the condition "+conditionType)
			return n
		}
		n.by(ofStatus(c.Status), c)
		if n.State != Healthy {
			return n
		}
	}
	return n
}

func manifestName(m *workv1.ManifestResourceMeta) string {
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + name
	}
	if m.Kind == "" {
		return strconv.Itoa(int(m.Ordinal)) + " " + name
	}
	return m.Kind + " " + name
}

// ReplicaSet returns the node of a ManifestWorkReplicaSet, which creates works for the clusters of placements.
func ReplicaSet(r *workv1alpha1.ManifestWorkReplicaSet) *Node {
	n := &Node{Kind: KindReplicaSet, Namespace: r.Namespace, Name: r.Name, Conditions: r.Status.Conditions}
	if !r.DeletionTimestamp.IsZero() {
		n.because(Progressing, ReasonDeleting, "it is being deleted")
		n.Since = since(*r.DeletionTimestamp)
		return n
	}
	for _, step := range []struct {
		condition string
		otherwise NodeState
	}{
		{workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified, Unhealthy},
		{workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, Progressing},
		{workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, Progressing},
	} {
		c := meta.FindStatusCondition(r.Status.Conditions, step.condition)
		switch {
		case c == nil || c.ObservedGeneration != r.Generation:
			n.because(Unknown, ReasonNotTold, "the hub has not reported "+step.condition+" yet")
			return n
		case c.Status != metav1.ConditionTrue:
			n.by(step.otherwise, c)
			if r.Status.Summary.Degraded > 0 {
				n.State = Unhealthy
			}
			return n
		}
		n.by(Healthy, c)
	}
	n.Message = fmt.Sprintf("%d works", r.Status.Summary.Total)
	return n
}
