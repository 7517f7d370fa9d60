// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// again is the delay of a retry.
	again = 200 * time.Millisecond
	// look is the interval of syncs without a change, for the renewal of tokens.
	look = 10 * time.Second
	// graceWithoutPod is the grace period for the processes of a pod that has been removed from the cluster.
	graceWithoutPod = 2 * time.Second
)

// worker runs one pod. Only its own goroutine uses it, except for fields with a different comment.
type worker struct {
	k               *Kubelet
	namespace, name string
	uid             types.UID
	dir             string
	wake            chan struct{}
	renewTokens     atomic.Bool
	// killed reports whether its processes must not be restarted.
	killed atomic.Bool

	// network is guarded by the kubelet.
	network *network

	pod              *corev1.Pod
	bound            bool
	volumes          map[string]*mounted
	inits, mains     []*container
	written          corev1.PodStatus
	deadline         time.Time
	said             string
	started, removed bool
}

func newWorker(k *Kubelet, pod *corev1.Pod) *worker {
	return &worker{k: k, namespace: pod.Namespace, name: pod.Name, uid: pod.UID, dir: filepath.Join(k.dir, string(pod.UID)),
		wake: make(chan struct{}, 1)}
}

// awake notifies the worker. It is safe for concurrent use.
func (w *worker) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// work syncs the pod until it is deleted, or the test ends.
func (w *worker) work(ctx context.Context) {
	defer w.end()
	for ctx.Err() == nil {
		next, err := w.sync(ctx)
		if w.removed {
			return
		}
		if err != nil {
			next = again
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				w.say(err)
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// say logs an error once.
func (w *worker) say(err error) {
	if text := err.Error(); text != w.said {
		w.said = text
		w.k.t.Logf("kubelet: pod %s/%s: %s", w.namespace, w.name, text)
	}
}

// end ends all processes of the pod, and deletes its directory.
func (w *worker) end() {
	for _, c := range append(w.inits, w.mains...) {
		c.kill()
	}
	if w.network != nil {
		w.network.close()
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.k.t.Logf("kubelet: pod %s/%s: %v", w.namespace, w.name, err)
	}
}

// sync syncs the pod once, and returns the time until the next sync.
func (w *worker) sync(ctx context.Context) (next time.Duration, err error) {
	cached, err := w.k.pods.Pods(w.namespace).Get(w.name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && cached.UID != w.uid:
		return w.withoutPod()
	case err != nil:
		return 0, err
	}
	w.pod = cached.DeepCopy()
	switch {
	case w.pod.Spec.NodeName == "":
		return look, w.bind(ctx)
	case w.pod.Spec.NodeName != w.k.config.Node: // a different scheduler was faster
		w.removed = true
		return look, nil
	case w.pod.DeletionTimestamp != nil:
		return w.terminate(ctx)
	case w.over():
		return look, nil
	}
	next, waiting := w.run(ctx)
	if isRefusal(waiting) {
		w.k.refuse(w.pod, waiting)
		next = look
	}
	return next, w.tell(ctx, waiting)
}

// withoutPod stops the processes of a pod that was removed without a grace period.
func (w *worker) withoutPod() (time.Duration, error) {
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(graceWithoutPod)
	}
	w.removed = w.stopAll()
	return again, nil
}

func (w *worker) bind(ctx context.Context) error {
	if w.bound {
		return nil
	}
	err := w.k.client.CoreV1().Pods(w.namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: w.namespace, UID: w.uid},
		Target:     corev1.ObjectReference{Kind: "Node", Name: w.k.config.Node},
	}, metav1.CreateOptions{})
	w.bound = err == nil
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// terminate stops the containers, kills them at the end of the grace period, and then removes the pod.
func (w *worker) terminate(ctx context.Context) (time.Duration, error) {
	if w.deadline.IsZero() {
		grace := time.Duration(0)
		if w.pod.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*w.pod.DeletionGracePeriodSeconds) * time.Second
		}
		w.deadline = time.Now().Add(grace)
	}
	gone := w.stopAll()
	if w.started {
		if err := w.tell(ctx, nil); err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	if !gone {
		return min(again, time.Until(w.deadline)), nil
	}
	err := w.k.client.CoreV1().Pods(w.namespace).Delete(ctx, w.name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(w.uid))})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return look, err
}

// stopAll asks all containers to end by the deadline, and reports whether they have.
func (w *worker) stopAll() bool {
	gone := true
	for _, c := range append(w.inits, w.mains...) {
		gone = c.stop(w.deadline) && gone
	}
	return gone
}

// over reports whether the pod has ended for good.
func (w *worker) over() bool {
	return w.pod.Status.Phase == corev1.PodSucceeded || w.pod.Status.Phase == corev1.PodFailed
}

// run starts what must run now. It returns an error if something cannot start.
func (w *worker) run(ctx context.Context) (next time.Duration, err error) {
	if err := w.begin(); err != nil {
		return again, err
	}
	if err := w.prepare(ctx); err != nil && !w.started {
		return again, err
	} else if err != nil { // mounted files stay unchanged
		w.say(err)
	}
	w.started = true
	next = look
	for _, c := range w.inits {
		if !c.succeeded() {
			return min(next, c.sync()), nil // one after the other
		}
	}
	for _, c := range w.mains {
		next = min(next, c.sync())
	}
	return next, nil
}

// begin validates the pod once.
func (w *worker) begin() error {
	if w.mains != nil {
		return nil
	}
	if err := check(w.pod); err != nil {
		return err
	}
	if err := w.k.connect(w); err != nil {
		return err
	}
	for i := range w.pod.Spec.InitContainers {
		w.inits = append(w.inits, newContainer(w, w.pod.Spec.InitContainers[i], true))
	}
	for i := range w.pod.Spec.Containers {
		w.mains = append(w.mains, newContainer(w, w.pod.Spec.Containers[i], false))
	}
	return nil
}

// tell updates the status of the pod if it has changed.
func (w *worker) tell(ctx context.Context, waiting error) error {
	status := w.status(waiting)
	if equality.Semantic.DeepEqual(status, w.pod.Status) || equality.Semantic.DeepEqual(status, w.written) {
		return nil
	}
	w.pod.Status = status
	_, err := w.k.client.CoreV1().Pods(w.namespace).UpdateStatus(ctx, w.pod, metav1.UpdateOptions{})
	if err == nil {
		w.written = status
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
