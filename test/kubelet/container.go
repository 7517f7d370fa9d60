// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A container that ends is restarted immediately, then after firstBackoff, and after twice as long each time, until it has run for goodRun.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
	goodRun      = time.Minute
)

// deafness is the time that a container may take until it handles signals. Earlier ones are lost, since it is the first process of its namespace. A real
// kubelet sends them all the same, and finally kills the container.
const deafness = 10 * time.Second

// container is a container of a pod, including its restarts.
type container struct {
	w      *worker
	spec   corev1.Container
	isInit bool
	log    *containerLog

	life     *life
	last     *corev1.ContainerStateTerminated
	restarts int32
	failures int
	notUntil time.Time
	// waiting is why it does not run.
	waiting *corev1.ContainerStateWaiting
}

// life is one process of a container.
type life struct {
	process  *process
	started  time.Time
	deadline time.Time // when it is killed; zero for never
	asked    bool      // to end
	endProbe context.CancelFunc
	probes   sync.WaitGroup

	mu sync.Mutex
	// ready and hasStarted are the results of probes. sick is why it must be restarted.
	ready, hasStarted bool
	sick              string
	// finished is when it ended.
	finished time.Time
}

func newContainer(w *worker, spec corev1.Container, isInit bool) *container {
	return &container{w: w, spec: spec, isInit: isInit, log: w.k.newLog(w.pod, spec.Name),
		waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
}

func (l *life) running() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.process.ended:
		return false
	default:
		return true
	}
}

// succeeded reports whether an init container has completed.
func (c *container) succeeded() bool {
	return c.life != nil && !c.life.running() && c.life.process.exitCode() == 0
}

// done reports whether the container has ended, and is not restarted.
func (c *container) done() bool {
	if c.life == nil || c.life.running() {
		return false
	}
	switch c.w.pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return true
	case corev1.RestartPolicyOnFailure:
		return c.life.process.exitCode() == 0
	}
	return c.isInit && c.life.process.exitCode() == 0
}

// sync starts the container if it must run and does not, and stops it if it is sick. It returns the time until the next sync.
func (c *container) sync() time.Duration {
	if c.w.killed.Load() && c.life.running() {
		_ = c.life.process.os.Kill() // its end is observed later
		return look
	}
	if c.life.running() {
		c.life.mu.Lock()
		sick := c.life.sick
		c.life.mu.Unlock()
		if sick == "" {
			return look
		}
		if c.life.deadline.IsZero() {
			_, _ = fmt.Fprintf(c.log, "kubelet: %s\n", sick)
			c.stop(time.Now().Add(c.grace()))
		}
		c.stop(c.life.deadline)
		return again
	}
	if c.done() {
		return look
	}
	if c.life != nil && c.waiting == nil {
		c.plan()
	}
	if c.w.killed.Load() {
		c.waiting = &corev1.ContainerStateWaiting{Reason: "Killed", Message: "it is not started again"}
		return look
	}
	if wait := time.Until(c.notUntil); wait > 0 {
		return wait
	}
	if err := c.start(); err != nil {
		if isRefusal(err) {
			c.w.k.refuse(c.w.pod, err)
		}
		c.waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
		if errors.As(err, new(noImage)) {
			c.waiting.Reason = "ImagePullBackOff"
		}
		c.notUntil = time.Now().Add(again)
		return again
	}
	return look
}

// plan sets when a container that has ended is restarted.
func (c *container) plan() {
	state := c.terminated()
	c.last = state
	if c.life.finished.Sub(c.life.started) > goodRun {
		c.failures = 0
	}
	wait := time.Duration(0)
	if c.failures > 0 {
		wait = min(firstBackoff<<min(c.failures-1, 10), lastBackoff)
	}
	c.failures++
	c.notUntil = time.Now().Add(wait)
	c.waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
		Message: fmt.Sprintf("it has ended with exit code %d and starts again after %s", state.ExitCode, wait)}
}

func (c *container) grace() time.Duration {
	if seconds := c.w.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 30 * time.Second
}

// start starts a new process.
func (c *container) start() error {
	s, err := c.w.sandbox(&c.spec)
	if err != nil {
		return err
	}
	p, err := run(c.w.network, s, c.log)
	if err != nil {
		return err
	}
	if c.life != nil {
		c.restarts++
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{process: p, started: time.Now(), endProbe: cancel}
	l.hasStarted = c.spec.StartupProbe == nil
	l.ready = l.hasStarted && c.spec.ReadinessProbe == nil
	c.life, c.waiting = l, nil
	for _, of := range []struct {
		kind  probeKind
		probe *corev1.Probe
	}{{startup, c.spec.StartupProbe}, {liveness, c.spec.LivenessProbe}, {readiness, c.spec.ReadinessProbe}} {
		if of.probe != nil {
			l.probes.Go(func() { c.probe(ctx, l, of.kind, of.probe) })
		}
	}
	l.probes.Go(func() {
		<-p.ended
		l.mu.Lock()
		l.finished = time.Now()
		l.mu.Unlock()
		cancel()
		c.w.awake()
	})
	return nil
}

// stop asks the container to end, and kills it at the deadline. It reports whether it has ended.
func (c *container) stop(deadline time.Time) bool {
	l := c.life
	if !l.running() {
		return true
	}
	l.deadline = deadline
	if !l.asked && (l.process.hears(syscall.SIGTERM) || time.Since(l.started) > deafness) {
		_ = l.process.os.Signal(syscall.SIGTERM)
		l.asked = true
	}
	if !time.Now().Before(deadline) {
		_ = l.process.os.Kill()
	}
	return false
}

// kill kills the container, and waits for its end.
func (c *container) kill() {
	if c.life == nil {
		return
	}
	_ = c.life.process.os.Kill()
	<-c.life.process.ended
	c.life.probes.Wait()
}

// terminated returns the state of a process that has ended.
func (c *container) terminated() *corev1.ContainerStateTerminated {
	l := c.life
	l.probes.Wait() // it has ended
	code := l.process.exitCode()
	state := &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Completed",
		StartedAt: stamp(l.started), FinishedAt: stamp(l.finished)}
	if code != 0 {
		state.Reason = "Error"
		if c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
			state.Message = c.log.tail(2048)
		}
	}
	return state
}

// status returns the container's status for the pod.
func (c *container) status() corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image, RestartCount: c.restarts}
	if c.last != nil {
		status.LastTerminationState.Terminated = c.last
	}
	switch {
	case c.life.running():
		c.life.mu.Lock()
		ready, started := c.life.ready && c.life.deadline.IsZero(), c.life.hasStarted
		c.life.mu.Unlock()
		status.Ready, status.Started = ready && !c.isInit, &started
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: stamp(c.life.started)}
	case c.waiting != nil:
		status.Started, status.State.Waiting = new(bool), c.waiting
	default:
		status.Started, status.State.Terminated = new(bool), c.terminated()
		status.Ready = c.isInit && c.succeeded()
	}
	return status
}

// logLimit is the largest size of a container's log in bytes.
const logLimit = 32 << 20

// containerLog is the output of a container, including its restarts. If it is too long, the beginning is dropped, and a line reports that.
type containerLog struct {
	namespace, pod, container string

	mu      sync.Mutex
	said    []byte
	dropped int
}

// Write implements io.Writer.
func (l *containerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, p...)
	if over := len(l.said) - logLimit; over > 0 {
		over = min(over+logLimit/4, len(l.said)) // not at each write
		l.said = append([]byte(nil), l.said[over:]...)
		l.dropped += over
	}
	return len(p), nil
}

// String returns the log.
func (l *containerLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		return fmt.Sprintf("… %d bytes were dropped …\n%s", l.dropped, l.said)
	}
	return string(l.said)
}

// tail returns the end of the log, as in a termination message.
func (l *containerLog) tail(size int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.said[max(0, len(l.said)-size):])
}
