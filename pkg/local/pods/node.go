// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods is the node of a local hub. It runs the pods of hub-operator, and of agents that serve other clusters, as processes of the user who
// runs it. They get what their pods mount, as files that follow changes, and listen on loopback only. It needs no privilege, so a process sees the
// files of that user, too: it runs no pods of other programs or in other namespaces.
package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Name is the name of the node.
const Name = "this-machine"

const (
	// resyncInterval is the interval of checks of pods without events: their processes exit, and become ready, by themselves.
	resyncInterval = time.Second
	// heartbeat is the interval of the node's status updates. The node lifecycle controller marks the node as unreachable after 40 seconds.
	heartbeat = 10 * time.Second
)

// Options is the configuration of a node.
type Options struct {
	// Cluster is the client configuration of the cluster of the pods, as an admin of it.
	Cluster *rest.Config
	// BinDir has the programs of the images.
	BinDir string
	// ImagesDir has the images, as in package image: the pods then run in these.
	ImagesDir string
	// Dir is for the files of pods. Its content is deleted at the start and at the end.
	Dir string
	// LogDir is for the output of pods, with a file for each.
	LogDir string
	// Log is called with errors. It may be nil.
	Log func(format string, args ...any)
}

type node struct {
	Options
	client  kubernetes.Interface
	pods    corelisters.PodLister
	secrets corelisters.SecretLister
	// wake makes the node check its pods.
	wake chan struct{}
	runs map[types.UID]*run
	// ends are the processes that are about to end.
	ends sync.WaitGroup
	said string
}

// Run runs pods until the context ends, and stops their processes then.
func Run(ctx context.Context, config Options) error {
	client, err := kubernetes.NewForConfig(config.Cluster)
	if err != nil {
		return err
	}
	if config.Log == nil {
		config.Log = func(string, ...any) {}
	}
	n := &node{Options: config, client: client, wake: make(chan struct{}, 1), runs: map[types.UID]*run{}}
	if err := errors.Join(n.stopPrevious(), os.MkdirAll(config.Dir, 0o700), os.MkdirAll(config.LogDir, 0o700)); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	n.pods, n.secrets = factory.Core().V1().Pods().Lister(), factory.Core().V1().Secrets().Lister()
	for _, informer := range []cache.SharedIndexInformer{factory.Core().V1().Pods().Informer(), factory.Core().V1().Secrets().Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { n.awake() },
			UpdateFunc: func(_, _ any) { n.awake() }, DeleteFunc: func(any) { n.awake() }}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	n.work(ctx)
	for _, r := range n.runs {
		n.stopPod(r)
	}
	n.ends.Wait()
	return os.RemoveAll(config.Dir)
}

// stopPrevious stops the processes of a previous node that was killed.
func (n *node) stopPrevious() error {
	folders, err := filepath.Glob(filepath.Join(n.Dir, "*"))
	for _, folder := range folders {
		for name := range programs {
			err = errors.Join(err, processIn(folder, name, "").Stop())
		}
	}
	return errors.Join(err, os.RemoveAll(n.Dir))
}

func (n *node) awake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *node) work(ctx context.Context) {
	var reported time.Time
	for ctx.Err() == nil {
		var errs []error
		if time.Since(reported) > heartbeat {
			err := MarkReady(ctx, n.client, Name)
			if err == nil {
				reported = time.Now()
			} else {
				errs = append(errs, fmt.Errorf("updating the node: %w", err))
			}
		}
		n.report(ctx, errors.Join(append(errs, n.syncPods(ctx))...))
		timer := time.NewTimer(resyncInterval)
		select {
		case <-ctx.Done():
		case <-n.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// report logs an error, once.
func (n *node) report(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if text != n.said && text != "" && ctx.Err() == nil {
		n.Log("%s", text)
	}
	n.said = text
}

func (n *node) syncPods(ctx context.Context) error {
	pods, err := n.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	there := map[types.UID]bool{}
	for _, cached := range pods {
		there[cached.UID] = true
		if err := n.syncPod(ctx, cached.DeepCopy()); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", cached.Namespace, cached.Name, err))
		}
	}
	for uid, r := range n.runs {
		if there[uid] {
			continue
		}
		if n.stopPod(r) {
			errs = append(errs, os.RemoveAll(r.dir))
			delete(n.runs, uid)
		}
	}
	return errors.Join(errs...)
}

// syncPod reconciles a pod once.
func (n *node) syncPod(ctx context.Context, pod *corev1.Pod) error {
	r := n.runs[pod.UID]
	switch {
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != Name:
		return nil
	case pod.DeletionTimestamp != nil:
		if r != nil && !n.stopPod(r) {
			return nil
		}
		return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil
	}
	if why := refused(pod); why != "" {
		return n.refuse(ctx, pod, why)
	}
	if pod.Spec.NodeName == "" {
		return n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: Name},
		}, metav1.CreateOptions{})
	}
	if r == nil {
		r = n.newRun(pod)
		n.runs[pod.UID] = r
	}
	r.pod = pod
	return errors.Join(n.syncProcess(ctx, r), n.updateStatus(ctx, r))
}

// stopPod stops the process of a pod, and reports whether it has exited.
func (n *node) stopPod(r *run) bool {
	if r.ended == nil {
		r.ended = make(chan struct{})
		n.ends.Go(func() {
			defer n.awake()
			defer close(r.ended)
			if err := r.process.Stop(); err != nil {
				n.Log("%v", err)
			}
		})
	}
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// MarkReady creates a node, or marks the existing one as ready.
func MarkReady(ctx context.Context, client kubernetes.Interface, name string) error {
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"}}}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	node.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: node.CreationTimestamp}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
