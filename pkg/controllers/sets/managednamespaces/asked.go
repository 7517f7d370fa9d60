// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespaces

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

// asked has the namespaces that each cluster must have. It has only the sets that request any, so that the others cost nothing.
type asked struct {
	mu    sync.Mutex
	index *membership.Index
	// namespaces are the namespaces that a set requests, ordered by name.
	namespaces map[string][]string
	// clustersOf are the members of a set, and setsOf the sets of a cluster, from the index.
	clustersOf, setsOf map[string]sets.Set[string]
}

func newRequested() *asked {
	return &asked{
		index:      membership.New(),
		namespaces: map[string][]string{},
		clustersOf: map[string]sets.Set[string]{},
		setsOf:     map[string]sets.Set[string]{},
	}
}

// of returns the namespaces that a cluster must have, ordered by set and name.
func (a *asked) of(name string) (all []clusterv1.ClusterSetManagedNamespaceConfig) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, set := range sets.List(a.setsOf[name]) {
		for _, namespace := range a.namespaces[set] {
			all = append(all, clusterv1.ClusterSetManagedNamespaceConfig{ClusterSet: set, Name: namespace})
		}
	}
	return all
}

// setCluster reports whether the sets of the cluster have changed.
func (a *asked) setCluster(c *clusterv1.ManagedCluster) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Membership depends on nothing else.
	return len(a.apply(a.index.SetCluster(&cluster.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: c.UID, Labels: c.Labels},
	}))) > 0
}

func (a *asked) deleteCluster(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.apply(a.index.DeleteCluster(name))
}

// setSet returns the clusters whose namespaces have changed. A set that is being deleted requests nothing.
func (a *asked) setSet(s *clusterv1beta2.ManagedClusterSet) (sets.Set[string], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(s.Spec.ManagedNamespaces) == 0 || !s.DeletionTimestamp.IsZero() {
		return a.dropSet(s.Name), nil
	}
	internal := &cluster.ManagedClusterSet{}
	if err := clusterv1beta2.Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(s, internal, nil); err != nil {
		return nil, err
	}
	names := make([]string, len(s.Spec.ManagedNamespaces))
	for i := range names {
		names[i] = s.Spec.ManagedNamespaces[i].Name
	}
	slices.Sort(names)
	same := slices.Equal(names, a.namespaces[s.Name])
	a.namespaces[s.Name] = names
	touched := a.apply(a.index.SetSet(internal))
	if !same {
		touched = touched.Union(a.clustersOf[s.Name])
	}
	return touched, nil
}

func (a *asked) deleteSet(name string) sets.Set[string] {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropSet(name)
}

func (a *asked) dropSet(name string) sets.Set[string] {
	delete(a.namespaces, name)
	return a.apply(a.index.DeleteSet(name))
}

// apply applies the changes of the index, and returns the clusters that were added to a set or removed from one.
func (a *asked) apply(changes []membership.Change) sets.Set[string] {
	touched := sets.New[string]()
	for _, change := range changes {
		name, set := change.Member.Spec.Cluster, change.Member.Spec.ClusterSet
		switch change.Type {
		case watch.Added:
			add(a.clustersOf, set, name)
			add(a.setsOf, name, set)
		case watch.Deleted:
			remove(a.clustersOf, set, name)
			remove(a.setsOf, name, set)
		default:
			continue
		}
		touched.Insert(name)
	}
	return touched
}

func add(m map[string]sets.Set[string], key, value string) {
	if m[key] == nil {
		m[key] = sets.New[string]()
	}
	m[key].Insert(value)
}

func remove(m map[string]sets.Set[string], key, value string) {
	m[key].Delete(value)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}

// sameNamespaces reports whether two lists have the same namespaces in the same order, whatever their conditions.
func sameNamespaces(a, b []clusterv1.ClusterSetManagedNamespaceConfig) bool {
	return slices.EqualFunc(a, b, sameNamespace)
}

func sameNamespace(a, b clusterv1.ClusterSetManagedNamespaceConfig) bool {
	return a.ClusterSet == b.ClusterSet && a.Name == b.Name
}
