// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// Observation holds what the agent observes of its own cluster. An empty field is not known.
type Observation struct {
	// Unhealthy is why the cluster's API server is unhealthy, or nil.
	Unhealthy             error
	Version               string
	Capacity, Allocatable clusterv1.ResourceList
	Claims                []clusterv1.ManagedClusterClaim
	// Nodes are for other tasks.
	Nodes *hub.Nodes
}

// Facts observe the agent's own cluster.
type Facts interface {
	// Start starts a watch that calls changed; stop ends it.
	Start(ctx context.Context, changed func()) (stop func(), err error)
	Observe(ctx context.Context) Observation
}

// syncedWithin is the time for which Start waits for the nodes, so that the first report to the hub is complete. An agent that may not read the nodes continues
// without them.
const syncedWithin = 2 * time.Second

// spokeFacts observes the cluster by requests to its API server.
type spokeFacts struct {
	spoke *spoke.Cluster
	// probe checks the health of the API server.
	probe  func(context.Context) error
	claims Claims

	nodes   informers.SharedInformerFactory
	id      string
	skipped repeat.Said
}

var _ Facts = &spokeFacts{}

// The hub's limits for a cluster. It would reject larger values, and the whole status with them.
const (
	maxVersion   = 256
	maxResources = 512
	maxResource  = 317
)

// NewFacts returns the Facts of a cluster.
func NewFacts(cluster *spoke.Cluster, claims Claims) Facts {
	return &spokeFacts{spoke: cluster, probe: probeLive(cluster.Client.Discovery().RESTClient()), claims: claims}
}

// Start implements Facts: it watches the nodes, if the agent may read them.
func (f *spokeFacts) Start(ctx context.Context, changed func()) (stop func(), err error) {
	if f.spoke.NamespaceScoped {
		return func() {}, nil
	}
	f.nodes = informers.NewSharedInformerFactoryWithOptions(f.spoke.Watching, 0, informers.WithTransform(slimNode))
	_, err = f.nodes.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if !equality.Semantic.DeepEqual(counted(before), counted(after)) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f.nodes.StartWithContext(ctx)
	synced, enough := context.WithTimeout(ctx, syncedWithin)
	defer enough()
	f.nodes.WaitForCacheSyncWithContext(synced)
	return func() { cancel(); f.nodes.Shutdown() }, nil
}

// slimNode drops the fields of a node that are not used.
func slimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: map[string]string{corev1.LabelTopologyRegion: node.Labels[corev1.LabelTopologyRegion]}},
		Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, ProviderID: node.Spec.ProviderID},
		Status: corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
			NodeInfo: corev1.NodeSystemInfo{Architecture: node.Status.NodeInfo.Architecture}},
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

// Observe implements Facts.
func (f *spokeFacts) Observe(ctx context.Context) (o Observation) {
	ctx, cancel := context.WithTimeout(ctx, 3*spoke.Timeout)
	defer cancel()
	o.Unhealthy = f.probe(ctx)
	if o.Unhealthy != nil {
		return o
	}
	if version, err := f.spoke.Client.Discovery().ServerVersion(); err == nil && len(version.GitVersion) <= maxVersion {
		o.Version = version.GitVersion
	}
	if f.spoke.NamespaceScoped { // nothing else can be read
		o.Claims = f.mergeClaims(ctx, nil, productClaims("", o.Version, nil))
		return o
	}
	nodes := f.listNodes()
	if nodes != nil {
		o.Capacity, o.Allocatable = sumNodes(nodes)
		o.Nodes = nodesOf(nodes, o.Capacity)
	}
	own, err := f.clusterClaims(ctx)
	if err != nil {
		if f.skipped.Again("claims", err.Error()) {
			klog.FromContext(ctx).Info("Could not read the ClusterClaims", "reason", err.Error())
		}
		return o
	}
	if f.id == "" {
		if id, err := f.spoke.ID(ctx); err == nil && len(id) <= maxClaim { // otherwise it is requested again next time
			f.id = id
		}
	}
	if f.id == "" || nodes == nil {
		return o // with incomplete facts the hub would drop the others
	}
	o.Claims = f.mergeClaims(ctx, own, productClaims(f.id, o.Version, nodes))
	return o
}

// listNodes returns the nodes, or nil as long as they are not known.
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

// sumNodes adds up the resources of the nodes. Unschedulable nodes do not count as allocatable. If there are more resources than the hub accepts, it
// returns nil.
func sumNodes(nodes []*corev1.Node) (capacity, allocatable clusterv1.ResourceList) {
	capacity, allocatable = clusterv1.ResourceList{}, clusterv1.ResourceList{}
	add := func(to clusterv1.ResourceList, list corev1.ResourceList) {
		for name, q := range list {
			if len(name) > maxResource {
				continue
			}
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
	if len(capacity) > maxResources || len(allocatable) > maxResources {
		return nil, nil
	}
	return capacity, allocatable
}

// maxArches is the maximum number of architectures that are counted, since a cluster may report any.
const maxArches = 16

// nodesOf returns the sums over the nodes for other tasks.
func nodesOf(nodes []*corev1.Node, capacity clusterv1.ResourceList) *hub.Nodes {
	seen := &hub.Nodes{Arches: map[string]int{}}
	cpu, memory := capacity[clusterv1.ResourceName(corev1.ResourceCPU)], capacity[clusterv1.ResourceName(corev1.ResourceMemory)]
	seen.CPU, seen.Memory = cpu.Value(), memory.Value()
	for _, node := range nodes {
		arch := node.Status.NodeInfo.Architecture
		if _, counted := seen.Arches[arch]; counted || len(seen.Arches) < maxArches {
			seen.Arches[arch]++
		}
	}
	return seen
}
