// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

const probed = `
terminationGracePeriodSeconds: 1
containers:
- name: main
  args: [--address=:8080]
  ports: [{name: web, containerPort: 8080}]
  startupProbe: {httpGet: {path: /live, port: web}, periodSeconds: 1, failureThreshold: 120, timeoutSeconds: 30}
  readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 30}
  livenessProbe: {httpGet: {path: /live, port: web}, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 30}
`

// TestDeployment_IsAvailableWhileItsPodIsReady verifies that controllers observe the results of a pod's probes, and that a Service routes to it.
func TestDeployment_IsAvailableWhileItsPodIsReady(t *testing.T) {
	f := newFixture(t)
	template := f.podOf("web", probed)
	labels := map[string]string{"app": "web"}
	deployments := f.client.AppsV1().Deployments(f.namespace)
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template.Spec},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	available := func(want int32) {
		t.Helper()
		f.eventually(fmt.Sprintf("%d are available", want), func(ctx context.Context) error {
			d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err == nil && (d.Status.AvailableReplicas != want || d.Status.Replicas != 1) {
				err = fmt.Errorf("%+v", d.Status)
			}
			return err
		})
	}
	address := f.Forward(f.namespace, "web", 80)
	if err := dial(address); err == nil {
		t.Error("a Service that is not there leads somewhere")
	}
	_, err = f.client.CoreV1().Services(f.namespace).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("web")}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	available(1)
	if err := dial(address); err != nil {
		t.Errorf("the Service does not lead to its pod: %v", err)
	}
	f.mustAsk("POST", "web-", "/ready", "off", "true")
	available(0)
	if err := dial(address); err == nil {
		t.Error("the Service leads to a pod that is not ready")
	}
	f.mustAsk("POST", "web-", "/ready", "off", "false")
	available(1)

	// If it fails its liveness probe, it is restarted in the same pod.
	f.mustAsk("POST", "web-", "/live", "off", "true")
	f.eventually("it is started again", func(ctx context.Context) error {
		pods, err := f.client.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d pods, %w", len(pods.Items), err)
		}
		of := pods.Items[0].Status.ContainerStatuses[0]
		if of.RestartCount != 1 || of.LastTerminationState.Terminated == nil || !of.Ready {
			return fmt.Errorf("%+v", of)
		}
		return nil
	})
	available(1)
	if said := f.Logs(f.namespace, "web-"); !strings.Contains(said, "liveness probe of container main has failed: /live answers 503") ||
		!strings.Contains(said, "asked to end") || strings.Count(said, "arguments:") < 2 {
		t.Errorf("it has said %s", said)
	}
}

// dial gets /ready over a new connection.
func dial(address string) error {
	return askHTTP(context.Background(), func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}, address, &corev1.HTTPGetAction{Path: "/ready"})
}

func TestPod_TerminatesAsRequested(t *testing.T) {
	f := newFixture(t)
	f.create("polite", probed)
	f.create("stubborn", strings.Replace(probed, "[--address=:8080]", "[--address=:8080, --stubborn]", 1))
	for name, want := range map[string]int32{"polite": 0, "stubborn": 128 + 9} {
		pid := f.pid(f.await(name, "is ready", isReady))
		// The finalizer keeps the pod, so that its last status can be read.
		patch := []byte(`{"metadata":{"finalizers":["example.com/look"]}}`)
		pods := f.client.CoreV1().Pods(f.namespace)
		if _, err := pods.Patch(t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.await(name, "has ended", func(pod *corev1.Pod) bool {
			state := pod.Status.ContainerStatuses[0].State.Terminated
			return state != nil && state.ExitCode == want && !isReady(pod)
		})
		if !strings.Contains(f.Logs(f.namespace, name), "asked to end") {
			t.Errorf("%s was not asked", name)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the process of %s: %v", name, err)
		}
		if _, err := pods.Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		f.gone(name)
	}
	// With force, the pod is deleted immediately, and its process ends.
	f.create("forced", probed)
	pid := f.pid(f.await("forced", "is ready", isReady))
	if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "forced", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	f.eventually("its process has ended", func(context.Context) error { return ended(pid) })
}

// pid returns the process ID of a pod with one container.
func (f *fixture) pid(pod *corev1.Pod) int {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.workers {
		if w.uid == pod.UID {
			return w.mains[0].life.process.os.Pid
		}
	}
	f.Fatalf("pod %s does not run", pod.Name)
	return 0
}

func ended(pid int) error {
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}

// TestPod_ContainersInOrder verifies that init containers run first, one after the other, and that a claim stays when its pod is deleted.
func TestPod_ContainersInOrder(t *testing.T) {
	f := newFixture(t)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}}}
	if _, err := f.client.CoreV1().PersistentVolumeClaims(f.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const spec = `
restartPolicy: Never
initContainers:
- {name: one, args: [--write=/kept/order=1, --exit=0], volumeMounts: &mounts [{name: kept, mountPath: /kept}]}
- {name: two, args: [--write=/kept/order=2, --exit=%d], volumeMounts: *mounts}
containers:
- {name: main, args: [--write=/kept/order=m, --exit=7], volumeMounts: *mounts, terminationMessagePolicy: FallbackToLogsOnError}
volumes: [{name: kept, persistentVolumeClaim: {claimName: kept}}]
`
	failed := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }
	f.create("a", fmt.Sprintf(spec, 3))
	pod := f.await("a", "has failed", failed)
	if got := pod.Status.InitContainerStatuses[1].State.Terminated; got == nil || got.ExitCode != 3 || pod.Status.ContainerStatuses[0].State.Terminated != nil {
		t.Errorf("the containers are %+v, %+v", pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	}
	f.create("b", fmt.Sprintf(spec, 0))
	pod = f.await("b", "has failed", failed)
	if got := pod.Status.ContainerStatuses[0].State.Terminated; got == nil || got.ExitCode != 7 || !strings.Contains(got.Message, "arguments: --write=/kept/order=m") {
		t.Errorf("the container is %+v", got)
	}
	f.create("c", `
containers: [{name: main, args: [--address=:8080], ports: [{containerPort: 8080}], volumeMounts: [{name: kept, mountPath: /kept, readOnly: true}]}]
volumes: [{name: kept, persistentVolumeClaim: {claimName: kept}}]
`)
	f.eventually("what pods have written stays", func(context.Context) error {
		if got, err := f.ask("GET", "c", "/file/kept/order"); got != "1212m" {
			return fmt.Errorf("%q, %w", got, err)
		}
		return nil
	})
	if _, err := f.ask("PUT", "c", "/file/kept/order"); err == nil {
		t.Error("what is mounted read-only is written")
	}
}

// TestPod_IsRestarted verifies that a container that fails is restarted with a backoff, and that the status has the reason why it waits.
func TestPod_IsRestarted(t *testing.T) {
	f := newFixture(t)
	f.create("p", `{restartPolicy: OnFailure, containers: [{name: main, args: [--exit=4]}]}`)
	f.create("done", `{restartPolicy: OnFailure, containers: [{name: main, args: [--exit=0]}]}`)
	f.create("no-image", `{containers: [{name: main, image: "clusterhub/nothing:v1"}]}`)
	f.create("others-image", `{containers: [{name: main, image: "example.com/tester:v1"}]}`)
	f.await("p", "was started again", func(pod *corev1.Pod) bool {
		of := pod.Status.ContainerStatuses[0]
		return of.RestartCount >= 2 && of.State.Waiting != nil && of.State.Waiting.Reason == "CrashLoopBackOff" &&
			of.LastTerminationState.Terminated.ExitCode == 4 && pod.Status.Phase == corev1.PodRunning
	})
	f.await("done", "has succeeded", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	for _, name := range []string{"no-image", "others-image"} {
		f.await(name, "waits for its image", func(pod *corev1.Pod) bool {
			waiting := pod.Status.ContainerStatuses[0].State.Waiting
			return waiting != nil && waiting.Reason == "ImagePullBackOff" && strings.Contains(waiting.Message, "is not there")
		})
	}
}

// strict records the errors of a kubelet.
type strict struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (s *strict) Error(args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, fmt.Sprint(args...))
}

func (s *strict) Helper() {}

// TestPod_UnsupportedFieldFailsTest verifies that an unsupported field fails the test, and that the pod does not run.
func TestPod_UnsupportedFieldFailsTest(t *testing.T) {
	f := newFixture(t)
	// Another kubelet runs another node. Pods are assigned to it by their nodeName.
	s := &strict{TB: t}
	Start(s, Config{Cluster: f.cluster.AdminConfig(), BinDir: f.bin, Node: "strict"})
	for name, spec := range map[string]string{
		"grpc":       `{nodeName: strict, containers: [{name: main, ports: [{containerPort: 8080}], args: [":8080"], livenessProbe: {grpc: {port: 8080}}}]}`,
		"downward":   `{nodeName: strict, containers: [{name: main, env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}]}`,
		"everywhere": `{nodeName: strict, shareProcessNamespace: true, containers: [{name: main}]}`,
	} {
		f.create(name, spec)
		f.await(name, "is refused", func(pod *corev1.Pod) bool {
			waiting := pod.Status.ContainerStatuses[0].State.Waiting
			return pod.Status.Phase == corev1.PodPending && waiting != nil && waiting.Reason == "CreateContainerConfigError"
		})
		s.mu.Lock()
		found := strings.Join(s.errors, "\n")
		s.mu.Unlock()
		if !strings.Contains(found, "/"+name+": ") {
			t.Errorf("the test was not told of %s: %s", name, found)
		}
	}
}

// TestProcesses_EndWithTheTest verifies that processes end with the test that has started them, in any case.
func TestProcesses_EndWithTheTest(t *testing.T) {
	if os.Getenv("CLUSTERHUB_TEST_BIN") != "" {
		pid := startTester(t, os.Getenv("CLUSTERHUB_TEST_BIN"))
		fmt.Printf("pid %d\n", pid)
		time.Sleep(time.Hour)
	}
	f := newFixture(t)
	var pid int
	t.Run("ends", func(t *testing.T) {
		inner := &fixture{T: t, cluster: f.cluster, bin: f.bin, namespace: f.namespace}
		inner.Kubelet = Start(t, Config{Cluster: f.cluster.AdminConfig(), BinDir: f.bin, Node: "inner"})
		pid = inner.pid(inner.awaitCreated("p", "{nodeName: inner, containers: [{name: main, args: [--stubborn]}]}"))
	})
	if err := ended(pid); err != nil {
		t.Error(err)
	}

	// If a test is killed, its processes are killed, too.
	killed := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	killed.Env = append(os.Environ(), "CLUSTERHUB_TEST_BIN="+f.bin)
	out := &syncBuffer{}
	killed.Stdout, killed.Stderr = out, out
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	f.eventually("it has started a process", func(context.Context) error {
		if _, err := fmt.Sscanf(out.String(), "pid %d\n", &pid); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return syscall.Kill(pid, 0)
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	f.eventually("its process has ended", func(context.Context) error { return ended(pid) })
}

func (f *fixture) awaitCreated(name, spec string) *corev1.Pod {
	f.create(name, spec)
	return f.await(name, "runs", running)
}

// startTester starts a container without a cluster.
func startTester(t *testing.T, bin string) (pid int) {
	t.Helper()
	s := &sandbox{Root: t.TempDir(), User: imageUser, Group: imageUser, Hostname: "h", Args: []string{entrypoint},
		Mounts: []rootdir.Mount{{From: filepath.Join(bin, "tester"), To: entrypoint}}}
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	p, err := run(n, s, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p.os.Pid
}

// syncBuffer can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestPod_IsKilled verifies that the process of a killed pod gets no other signal, and is not restarted, and that the pod stays until it is deleted.
func TestPod_IsKilled(t *testing.T) {
	f := newFixture(t)
	f.create("killed", probed)
	f.await("killed", "is ready", isReady)
	f.Kill(f.namespace, "killed")
	pod := f.await("killed", "is not ready, and waits", func(pod *corev1.Pod) bool {
		waiting := pod.Status.ContainerStatuses[0].State.Waiting
		return !isReady(pod) && waiting != nil && waiting.Reason == "Killed"
	})
	of := pod.Status.ContainerStatuses[0]
	if ended := of.LastTerminationState.Terminated; ended == nil || ended.ExitCode != 128+9 || of.RestartCount != 0 {
		t.Errorf("it is %+v", of)
	}
	if said := f.Logs(f.namespace, "killed"); strings.Contains(said, "asked to end") {
		t.Errorf("it was asked to end: %s", said)
	}
	if conn, err := f.Dial(t.Context(), f.namespace, "killed", 8080); err == nil {
		_ = conn.Close()
		t.Error("it is reached")
	}
	if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "killed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.gone("killed")
}
