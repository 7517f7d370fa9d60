// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet runs the pods of a real kube-apiserver as processes on this machine, for tests. A container gets what its pod specifies, and
// nothing else: a root directory of its own with its program, the volumes that it mounts, and the few files that each container has, and the
// specified user, environment and token. So a test fails if a manifest lacks something.
//
// Everything in a pod that the kubelet does not support fails the test, and is reported in the pod's status: nothing is ignored silently. It
// differs from a real kubelet in these ways:
//
//   - It is also the scheduler, and assigns all pods to its one node.
//   - A pod has a network of its own, with a loopback and no address that others could use. It can connect to its kube-apiserver and to the
//     servers of Reach, at the addresses that these have on this machine. Dial, Forward and Egress connect to it, and so do probes.
//   - An image clusterhub/NAME:TAG is the program NAME of a directory, like the images of hack/release/image: user 65532, and nothing else inside.
//   - Resource limits are not enforced, and there is no network policy, no seccomp profile and no DNS.
//   - The backoff of a container that ends with an error is shorter, and so is the period of a probe that waits for success.
//   - A container is asked to end only when it handles the signal. A real kubelet asks immediately, which a program that has just started misses.
//
// It works on Linux: as root, or if the system allows users to create user namespaces.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/local/pods"
)

// Config is the configuration of a kubelet.
type Config struct {
	// Cluster is the configuration of a member of system:masters for the kube-apiserver of the pods. The pods use the same address.
	Cluster *rest.Config
	// BinDir has the programs of the images.
	BinDir string
	// ImagesDir has our images as `make roots` unpacks them, if it is not empty: see package image. A program that it does not have is taken from
	// BinDir.
	ImagesDir string
	// Versions are directories of programs that replace BinDir for a tag of the images. If a directory is empty, there are no images with that tag.
	Versions map[string]string
	// Args are additional arguments of all containers, and ArgsOf of those with a name.
	Args   []string
	ArgsOf map[string][]string
	// Reach are additional servers of this machine that pods can connect to: see Kubelet.Reach.
	Reach []string
	// ReadyFor is the time for which a pod seems to have been ready when it becomes ready, so that a Deployment does not wait for minReadySeconds.
	ReadyFor time.Duration
	// Node is the name of the node, "node-1" by default.
	Node string
}

// Kubelet is the one node of a cluster.
type Kubelet struct {
	t          testing.TB
	config     Config
	client     kubernetes.Interface
	host, port string
	dir        string
	pods       corelisters.PodLister
	secrets    corelisters.SecretLister
	configMaps corelisters.ConfigMapLister

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
	logs    []*containerLog
	refused map[string]bool
	// reach are the servers that pods can connect to.
	reach []string
}

// Start runs pods until the test ends, and then stops them.
func Start(t testing.TB, config Config) *Kubelet {
	t.Helper()
	if config.Node == "" {
		config.Node = "node-1"
	}
	if err := tryContainer(t.TempDir()); err != nil {
		t.Fatalf("this machine cannot run pods: %v. The kubelet of the tests needs Linux, and root or user namespaces", err)
	}
	client, err := kubernetes.NewForConfig(config.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Cluster.Host)
	if err != nil || server.Port() == "" {
		t.Fatalf("the address of the kube-apiserver is %q, want https://HOST:PORT", config.Cluster.Host)
	}
	k := &Kubelet{t: t, config: config, client: client, host: server.Hostname(), port: server.Port(), dir: t.TempDir(),
		workers: map[types.UID]*worker{}, refused: map[string]bool{}, reach: append([]string{server.Host}, config.Reach...)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	k.running.Go(func() { k.keepNode(ctx) })
	factory := informers.NewSharedInformerFactory(client, 0)
	k.pods, k.secrets, k.configMaps = factory.Core().V1().Pods().Lister(), factory.Core().V1().Secrets().Lister(), factory.Core().V1().ConfigMaps().Lister()
	k.follow(factory.Core().V1().Pods().Informer(), func(object metav1.Object) { k.follows(ctx, object) })
	k.follow(factory.Core().V1().Secrets().Informer(), k.wakeNamespace)
	k.follow(factory.Core().V1().ConfigMaps().Informer(), k.wakeNamespace)
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		k.running.Wait()
		if t.Failed() {
			k.tellLogs()
		}
	})
	factory.WaitForCacheSync(ctx.Done())
	return k
}

func (k *Kubelet) follow(informer cache.SharedIndexInformer, changed func(metav1.Object)) {
	handle := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(metav1.Object); ok {
			changed(o)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, now any) { handle(now) }, DeleteFunc: handle})
	if err != nil {
		k.t.Error(err)
	}
}

// follows starts a worker for a pod, or notifies its worker.
func (k *Kubelet) follows(ctx context.Context, object metav1.Object) {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" && pod.Spec.NodeName != k.config.Node {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[pod.UID]; w != nil {
		w.awake()
		return
	}
	if ctx.Err() != nil {
		return
	}
	w := newWorker(k, pod)
	k.workers[pod.UID] = w
	k.running.Go(func() {
		w.work(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.workers, w.uid)
	})
}

// wakeNamespace notifies the pods of a namespace of a change of what they mount.
func (k *Kubelet) wakeNamespace(object metav1.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		if w.namespace == object.GetNamespace() {
			w.awake()
		}
	}
}

// heartbeat is the interval of the node's status updates. The node lifecycle controller expects one within 40 seconds.
const heartbeat = 10 * time.Second

// keepNode creates the node, and reports that it is ready.
func (k *Kubelet) keepNode(ctx context.Context) {
	for ctx.Err() == nil {
		next := heartbeat
		if err := pods.MarkReady(ctx, k.client, k.config.Node); err != nil {
			next = 200 * time.Millisecond
			if ctx.Err() == nil && !apierrors.IsConflict(err) {
				k.t.Logf("kubelet: the node: %v", err)
			}
		}
		pause(ctx, next)
	}
}

// refuse fails the test once for an unsupported part of a pod.
func (k *Kubelet) refuse(pod *corev1.Pod, err error) {
	owner := pod.Name
	if of := metav1.GetControllerOf(pod); of != nil {
		owner = of.Kind + " " + of.Name
	}
	said := fmt.Sprintf("the pods of %s/%s: %v", pod.Namespace, owner, err)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.refused[said] {
		k.refused[said] = true
		k.t.Error("kubelet: " + said)
	}
}

// Dial connects to a port of a pod. Pods are selected by a prefix of their names. There must be one that is not being deleted.
func (k *Kubelet) Dial(ctx context.Context, namespace, podPrefix string, port int32) (net.Conn, error) {
	pods, err := k.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !strings.HasPrefix(pod.Name, podPrefix)
	})
	if len(pods) != 1 {
		return nil, fmt.Errorf("%d pods in namespace %s have names that begin with %q, want 1", len(pods), namespace, podPrefix)
	}
	return k.dialPod(ctx, pods[0], port)
}

// Reach allows all pods to connect to servers of this machine, HOST:PORT, where HOST is a loopback address. Their kube-apiserver is always allowed.
func (k *Kubelet) Reach(addresses ...string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reach = append(k.reach, addresses...)
	var errs []error
	for _, w := range k.workers {
		if w.network != nil {
			errs = append(errs, k.openDoors(w.network))
		}
	}
	return errors.Join(errs...)
}

// connect creates the network of a pod.
func (k *Kubelet) connect(w *worker) error {
	n, err := newNetwork()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.openDoors(n); err != nil {
		n.close()
		return err
	}
	w.network = n
	return nil
}

func (k *Kubelet) openDoors(n *network) error {
	for _, address := range k.reach {
		if err := n.reach(address); err != nil {
			return fmt.Errorf("a way to %s: %w", address, err)
		}
	}
	return nil
}

// RenewTokens renews the tokens of the ServiceAccounts of all pods immediately, as if they were about to expire.
func (k *Kubelet) RenewTokens() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.renewTokens.Store(true)
		w.awake()
	}
}

// Kill kills all processes of a pod, as on a machine that fails: they get no other signal, and are not restarted. The pod stays, and is not ready,
// until it is deleted.
func (k *Kubelet) Kill(namespace, name string) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	killed := false
	for _, w := range k.workers {
		if w.namespace == namespace && w.name == name {
			w.killed.Store(true)
			w.awake()
			killed = true
		}
	}
	if !killed {
		k.t.Errorf("kubelet: pod %s/%s does not run here, and cannot be killed", namespace, name)
	}
}

// Logs returns the logs of all containers, including those of deleted pods, in a namespace and with a prefix of the pod's name. Each may be empty,
// for all.
func (k *Kubelet) Logs(namespace, podPrefix string) string {
	k.mu.Lock()
	logs := slices.Clone(k.logs)
	k.mu.Unlock()
	var all strings.Builder
	for _, log := range logs {
		if (namespace == "" || namespace == log.namespace) && strings.HasPrefix(log.pod, podPrefix) {
			all.WriteString(log.String())
		}
	}
	return all.String()
}

func (k *Kubelet) tellLogs() {
	for _, log := range k.logs {
		said := log.String()
		k.t.Logf("container %s of pod %s/%s said:\n%s", log.container, log.namespace, log.pod, said[max(0, len(said)-8000):])
	}
}

func (k *Kubelet) newLog(pod *corev1.Pod, container string) *containerLog {
	log := &containerLog{namespace: pod.Namespace, pod: pod.Name, container: container}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.logs = append(k.logs, log)
	return log
}

// pause waits, or returns when the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// unsupported is an error for what this kubelet does not support.
type unsupported struct{ error }

func refusal(format string, args ...any) error { return unsupported{fmt.Errorf(format, args...)} }

func isRefusal(err error) bool { return errors.As(err, new(unsupported)) }
