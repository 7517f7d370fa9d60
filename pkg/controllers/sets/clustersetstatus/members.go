// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

// members counts the clusters of each set. It follows the watch of clustersetmembers as the store of a reflector, and stores only a pointer for
// each member. Numbers would not be enough, because a watch that is resumed may repeat events.
type members struct {
	listWatch cache.ListerWatcher
	// backoff is the backoff of the watch; nil is client-go's default.
	backoff *wait.Backoff

	mu sync.Mutex
	// sets has the clusters of every set that is not empty. Handles share one copy of a name that is in many sets.
	sets map[string]map[unique.Handle[string]]struct{}
	// changed is called with the name of a set whose number has changed. It must not block.
	changed func(set string)
	// waits reports whether a set will be reconciled anyway. It may be nil.
	waits func(set string) bool

	synced     chan struct{}
	syncedOnce sync.Once
}

var (
	_ cache.TransformingStore = &members{}
	_ source.SyncingSource    = &members{}
)

func newMembers(listWatch cache.ListerWatcher) *members {
	return &members{
		listWatch: listWatch,
		sets:      map[string]map[unique.Handle[string]]struct{}{},
		changed:   func(string) {},
		synced:    make(chan struct{}),
	}
}

// listWatchMembers lists and watches only the metadata of the members: their names have all that is needed.
func listWatchMembers(client metadata.Interface) cache.ListerWatcher {
	resource := client.Resource(viewv1alpha1.SchemeGroupVersion.WithResource("clustersetmembers"))
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}
}

// Start implements source.Source: it enqueues every set whose number of clusters changes. The reflector handles closed watches, expired versions
// and unavailable servers, and runs until the context ends.
func (m *members) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	m.mu.Lock()
	m.changed = func(set string) {
		if m.waits == nil || !m.waits(set) {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: set}})
		}
	}
	m.mu.Unlock()
	reflector := cache.NewReflectorWithOptions(m.listWatch, &metav1.PartialObjectMetadata{}, m,
		cache.ReflectorOptions{Name: "clustersetmembers", TypeDescription: "clustersetmembers", Backoff: m.backoff})
	go reflector.RunWithContext(ctx)
	return nil
}

// WaitForSync implements source.SyncingSource: no status is written before all members are known.
func (m *members) WaitForSync(ctx context.Context) error {
	select {
	case <-m.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("clustersetmembers could not be listed: %w", context.Cause(ctx))
	}
}

// String returns the name of the source in logs.
func (m *members) String() string { return "clustersetmembers" }

// count returns the number of clusters in a set.
func (m *members) count(set string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sets[set])
}

// Transformer implements cache.TransformingStore: while the members are streamed for the first time, the reflector stores only what is needed to
// count them.
func (m *members) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if member, ok := obj.(*metav1.PartialObjectMetadata); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: member.Name, UID: member.UID}}, nil
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (m *members) Add(obj any) error {
	set, cluster, err := split(obj)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if insert(m.sets, set, cluster) {
		m.changed(set)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (m *members) Update(obj any) error { return m.Add(obj) }

// Delete implements cache.ReflectorStore.
func (m *members) Delete(obj any) error {
	set, cluster, err := split(obj)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	handle := unique.Make(cluster)
	if _, ok := m.sets[set][handle]; !ok {
		return nil
	}
	delete(m.sets[set], handle)
	if len(m.sets[set]) == 0 {
		delete(m.sets, set)
	}
	m.changed(set)
	return nil
}

// Replace implements cache.ReflectorStore.
func (m *members) Replace(objs []any, _ string) error {
	sets := map[string]map[unique.Handle[string]]struct{}{}
	for _, obj := range objs {
		set, cluster, err := split(obj)
		if err != nil {
			return err
		}
		insert(sets, set, cluster)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.sets
	m.sets = sets
	for set, clusters := range sets {
		if len(clusters) != len(before[set]) {
			m.changed(set)
		}
	}
	for set := range before {
		if _, ok := sets[set]; !ok {
			m.changed(set)
		}
	}
	m.syncedOnce.Do(func() { close(m.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. It has no meaning here.
func (m *members) Resync() error { return nil }

func insert(sets map[string]map[unique.Handle[string]]struct{}, set, cluster string) bool {
	clusters := sets[set]
	if clusters == nil {
		clusters = map[unique.Handle[string]]struct{}{}
		// A clone, so that the set's name does not keep the member's in memory.
		sets[strings.Clone(set)] = clusters
	}
	handle := unique.Make(cluster)
	if _, ok := clusters[handle]; ok {
		return false
	}
	clusters[handle] = struct{}{}
	return true
}

// split splits the name of a member, "<cluster>.<set>", at its first dot: the name of a cluster is a DNS label and has none, that of a set may
// have.
func split(obj any) (set, cluster string, err error) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", "", err
	}
	cluster, set, ok := strings.Cut(name, ".")
	if !ok || cluster == "" || set == "" {
		return "", "", fmt.Errorf("clustersetmember %q is not named <cluster>.<set>", name)
	}
	return set, cluster, nil
}
