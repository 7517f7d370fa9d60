// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status returns the status of the pod. waiting is the error that it waits for.
func (w *worker) status(waiting error) corev1.PodStatus {
	status := *w.pod.Status.DeepCopy()
	if status.StartTime == nil {
		status.StartTime = new(stamp(time.Now()))
	}
	status.InitContainerStatuses, status.ContainerStatuses = w.statuses(w.inits, w.pod.Spec.InitContainers, waiting), w.statuses(w.mains, w.pod.Spec.Containers, waiting)
	initialized := !slices.ContainsFunc(w.inits, func(c *container) bool { return !c.succeeded() }) && w.started
	ready := initialized && !slices.ContainsFunc(status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready }) &&
		w.pod.DeletionTimestamp == nil
	status.Phase = w.phase(initialized)
	status.ObservedGeneration = w.pod.Generation
	now := time.Now()
	since := now
	if ready {
		since = now.Add(-w.k.config.ReadyFor)
	}
	set(&status, corev1.PodScheduled, true, "", now)
	set(&status, corev1.PodInitialized, initialized, "ContainersNotInitialized", now)
	set(&status, corev1.ContainersReady, ready, "ContainersNotReady", since)
	set(&status, corev1.PodReady, ready, "ContainersNotReady", since)
	return status
}

func (w *worker) statuses(containers []*container, specs []corev1.Container, waiting error) (all []corev1.ContainerStatus) {
	if containers != nil {
		for _, c := range containers {
			of := c.status()
			if waiting != nil && of.State.Waiting != nil {
				of.State.Waiting = &corev1.ContainerStateWaiting{Reason: of.State.Waiting.Reason, Message: waiting.Error()}
			}
			all = append(all, of)
		}
		return all
	}
	for _, spec := range specs {
		state := corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if waiting != nil {
			state = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: waiting.Error()}
		}
		all = append(all, corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, State: corev1.ContainerState{Waiting: &state}})
	}
	return all
}

func (w *worker) phase(initialized bool) corev1.PodPhase {
	failed := func(c *container) bool { return c.done() && c.life.process.exitCode() != 0 }
	switch {
	case w.mains == nil:
		return corev1.PodPending
	case slices.ContainsFunc(w.inits, failed):
		return corev1.PodFailed
	case !initialized || !slices.ContainsFunc(w.mains, func(c *container) bool { return c.life != nil }):
		return corev1.PodPending
	case slices.ContainsFunc(w.mains, func(c *container) bool { return !c.done() && !w.stopped(c) }):
		return corev1.PodRunning
	case slices.ContainsFunc(w.mains, func(c *container) bool { return c.life == nil || c.life.process.exitCode() != 0 }):
		return corev1.PodFailed
	}
	return corev1.PodSucceeded
}

// stamp returns a time with the API server's precision.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// stopped reports whether a container has ended because the pod is being deleted.
func (w *worker) stopped(c *container) bool {
	return w.pod.DeletionTimestamp != nil && !c.life.running()
}

// set sets a condition. Its transition time is since if this call changes the status.
func set(status *corev1.PodStatus, kind corev1.PodConditionType, holds bool, reason string, since time.Time) {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: status.ObservedGeneration, LastTransitionTime: stamp(since)}
	if !holds {
		condition.Status, condition.Reason = corev1.ConditionFalse, reason
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
