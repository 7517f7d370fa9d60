// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// updateStatus writes the status of a pod, if it has changed.
func (n *node) updateStatus(ctx context.Context, r *run) error {
	status := r.status()
	if equality.Semantic.DeepEqual(status, r.pod.Status) {
		return nil
	}
	r.pod.Status = status
	_, err := n.client.CoreV1().Pods(r.pod.Namespace).UpdateStatus(ctx, r.pod, metav1.UpdateOptions{})
	return err
}

// refuse sets in the status of a pod why it does not run.
func (n *node) refuse(ctx context.Context, pod *corev1.Pod, why string) error {
	before := pod.Status.DeepCopy()
	setCondition(&pod.Status, corev1.PodScheduled, false, corev1.PodReasonUnschedulable, why)
	if equality.Semantic.DeepEqual(*before, pod.Status) {
		return nil
	}
	_, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (r *run) status() corev1.PodStatus {
	status := *r.pod.Status.DeepCopy()
	if status.StartTime == nil {
		status.StartTime = new(stamp(time.Now()))
	}
	spec := &r.pod.Spec.Containers[0]
	running := !r.started.IsZero()
	c := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, ImageID: spec.Image, RestartCount: r.restarts, Ready: r.ready, Started: &running}
	if running {
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(r.started)}
		status.Phase = corev1.PodRunning
	} else {
		c.State.Waiting = r.waiting.DeepCopy()
	}
	status.ContainerStatuses = []corev1.ContainerStatus{c}
	status.ObservedGeneration = r.pod.Generation
	for kind, holds := range map[corev1.PodConditionType]bool{corev1.PodScheduled: true, corev1.PodInitialized: true, corev1.ContainersReady: r.ready,
		corev1.PodReady: r.ready} {
		setCondition(&status, kind, holds, "ContainersNotReady", "")
	}
	slices.SortFunc(status.Conditions, func(a, b corev1.PodCondition) int { return order(a.Type) - order(b.Type) })
	return status
}

var kinds = []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady}

func order(kind corev1.PodConditionType) int { return slices.Index(kinds, kind) }

// setCondition sets a condition, with the time of its last change.
func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool, reason, message string) {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: stamp(time.Now()), ObservedGeneration: status.ObservedGeneration}
	if !holds {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
	}
	at := slices.IndexFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if status.Conditions[at].Status == condition.Status {
		condition.LastTransitionTime = status.Conditions[at].LastTransitionTime
	}
	status.Conditions[at] = condition
}

// stamp returns a time with the precision of the API server.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
