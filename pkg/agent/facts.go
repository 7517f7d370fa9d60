// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

type quantity = resource.Quantity

// spokeTimeout is for one request to the agent's own cluster.
const spokeTimeout = 10 * time.Second

// observation is what the agent sees of its own cluster. What is empty is not known.
type observation struct {
	// unhealthy says what is wrong with the cluster's API server, or is nil.
	unhealthy             error
	version               string
	capacity, allocatable clusterv1.ResourceList
	claims                []clusterv1.ManagedClusterClaim
}

// facts observe the agent's own cluster.
type facts interface {
	observe(ctx context.Context) observation
}

// clusterID is what identifies a cluster: the UID of its namespace kube-system.
func clusterID(ctx context.Context, client kubernetes.Interface) (string, error) {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the cluster's id, the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// spokeFacts asks the cluster.
type spokeFacts struct {
	client kubernetes.Interface
	// watching is a client whose requests do not end by themselves.
	watching kubernetes.Interface
	dynamic  dynamic.Interface
	// probe asks the API server whether it is well.
	probe     func(context.Context) error
	maxClaims int
	changed   func()

	nodes   informers.SharedInformerFactory
	id      string
	skipped said
}

var _ facts = &spokeFacts{}

// start begins to watch the nodes; stop ends it.
func (f *spokeFacts) start(ctx context.Context) (stop func(), err error) {
	f.nodes = informers.NewSharedInformerFactoryWithOptions(f.watching, 0, informers.WithTransform(slimNode))
	_, err = f.nodes.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.changed() },
		UpdateFunc: func(before, after any) {
			if !equality.Semantic.DeepEqual(counted(before), counted(after)) {
				f.changed()
			}
		},
		DeleteFunc: func(any) { f.changed() },
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f.nodes.StartWithContext(ctx)
	return func() { cancel(); f.nodes.Shutdown() }, nil
}

// slimNode keeps of a node what is counted.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: map[string]string{corev1.LabelTopologyRegion: node.Labels[corev1.LabelTopologyRegion]}},
		Spec:   corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, ProviderID: node.Spec.ProviderID},
		Status: corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}, nil
}

func counted(object any) *corev1.Node {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	node = node.DeepCopy()
	node.ObjectMeta = metav1.ObjectMeta{}
	return node
}

func (f *spokeFacts) observe(ctx context.Context) (o observation) {
	ctx, cancel := context.WithTimeout(ctx, 3*spokeTimeout)
	defer cancel()
	if o.unhealthy = f.probe(ctx); o.unhealthy != nil {
		return o
	}
	if version, err := f.client.Discovery().ServerVersion(); err == nil {
		o.version = version.GitVersion
	}
	nodes := f.listNodes()
	if nodes != nil {
		o.capacity, o.allocatable = sumNodes(nodes)
	}
	own, err := f.clusterClaims(ctx)
	if err != nil {
		if f.skipped.again("claims", err.Error()) {
			klog.FromContext(ctx).Info("The ClusterClaims could not be read", "reason", err.Error())
		}
		return o
	}
	if f.id == "" {
		f.id, _ = clusterID(ctx, f.client) // asked again next time
	}
	if f.id == "" || nodes == nil {
		return o // half of the facts would have the hub forget the other half
	}
	o.claims = f.mergeClaims(ctx, own, productClaims(f.id, o.version, nodes))
	return o
}

// listNodes is nil as long as the nodes are not known.
func (f *spokeFacts) listNodes() []*corev1.Node {
	nodes := f.nodes.Core().V1().Nodes()
	if !nodes.Informer().HasSynced() {
		return nil
	}
	list, err := nodes.Lister().List(labels.Everything())
	if err != nil {
		return nil
	}
	if list == nil {
		list = []*corev1.Node{}
	}
	return list
}

// sumNodes adds up the nodes. What a node that takes no pods has free is not allocatable.
func sumNodes(nodes []*corev1.Node) (capacity, allocatable clusterv1.ResourceList) {
	capacity, allocatable = clusterv1.ResourceList{}, clusterv1.ResourceList{}
	add := func(to clusterv1.ResourceList, list corev1.ResourceList) {
		for name, q := range list {
			sum := to[clusterv1.ResourceName(name)]
			sum.Add(q)
			to[clusterv1.ResourceName(name)] = sum
		}
	}
	for _, node := range nodes {
		add(capacity, node.Status.Capacity)
		if !node.Spec.Unschedulable {
			add(allocatable, node.Status.Allocatable)
		}
	}
	return capacity, allocatable
}

// probeLive asks an API server whether it is alive, at the endpoint that every authenticated client may ask.
func probeLive(client rest.Interface) func(context.Context) error {
	ask := func(ctx context.Context, path string) error {
		ctx, cancel := context.WithTimeout(ctx, spokeTimeout)
		defer cancel()
		status := 0
		body, err := client.Get().AbsPath(path).Do(ctx).StatusCode(&status).Raw()
		switch {
		case status == http.StatusOK:
			return nil
		case status == http.StatusNotFound:
			return apierrors.NewNotFound(corev1.Resource("path"), path)
		case status != 0 && len(body) > 0:
			return fmt.Errorf("%s answered %d: %s", path, status, body)
		case err == nil:
			return fmt.Errorf("%s answered %d", path, status)
		}
		return err
	}
	return func(ctx context.Context) error {
		err := ask(ctx, "/livez")
		if apierrors.IsNotFound(err) { // before Kubernetes 1.16
			err = ask(ctx, "/healthz")
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %s", spokeTimeout)
		}
		return err
	}
}
