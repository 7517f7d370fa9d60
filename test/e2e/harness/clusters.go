// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Groups and labels of the hub.
const (
	ClusterGroup  = "cluster.open-cluster-management.io"
	RegisterGroup = "register.open-cluster-management.io"
	SetLabel      = ClusterGroup + "/clusterset"
	InfoPrefix    = "info.open-cluster-management.io/"
)

// Named returns the metadata of an object for which only the name matters.
func Named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// DeleteSet deletes a set of the shared hub, if it exists.
func DeleteSet(t *testing.T, name string) {
	t.Helper()
	if err := Admin(t).ClusterV1beta2().ManagedClusterSets().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// ManagedCluster returns a ManagedCluster that does not exist yet.
func ManagedCluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}
}

// NewManagedCluster creates a ManagedCluster as admin on the shared hub.
func NewManagedCluster(t *testing.T, name string, labels map[string]string) *clusterv1.ManagedCluster {
	t.Helper()
	c := Must(Admin(t).ClusterV1().ManagedClusters().Create(t.Context(), ManagedCluster(name, labels), metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = Admin(t).ClusterV1().ManagedClusters().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	return c
}

// LegacySet returns a set with the implied label.
func LegacySet(name string) *v1beta2.ManagedClusterSet {
	return &v1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// ExclusiveSet returns a set with the exclusive label.
func ExclusiveSet(name, key, value string) *v1beta1.ManagedClusterSet {
	return &v1beta1.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.ManagedClusterSetSpec{ClusterSelector: v1beta1.ManagedClusterSelector{
			SelectorType: v1beta1.ExclusiveLabel, ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: key, Value: value},
		}},
	}
}

// NewSet creates a set with the implied label as admin on the shared hub.
func NewSet(t *testing.T, name string) {
	t.Helper()
	Must(Admin(t).ClusterV1beta2().ManagedClusterSets().Create(t.Context(), LegacySet(name), metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = Admin(t).ClusterV1beta2().ManagedClusterSets().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
}

// NewFleet creates n clusters with a label, and a set that selects them by that label.
func NewFleet(t *testing.T, n int) (set string, names []string) {
	t.Helper()
	set = Unique("fleet")
	for i := range n {
		name := fmt.Sprintf("%s-%03d", set, i)
		NewManagedCluster(t, name, map[string]string{"fleet": set})
		names = append(names, name)
	}
	NewLabelSet(t, set, map[string]string{"fleet": set})
	return set, names
}

// LabelSet returns a set that selects by labels.
func LabelSet(name string, labels map[string]string) *v1beta1.ManagedClusterSet {
	s := &v1beta1.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.ClusterSelector.SelectorType = v1beta1.LabelSelector
	s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
	return s
}

// NewLabelSet creates a set that selects by labels, on the shared hub.
func NewLabelSet(t *testing.T, name string, labels map[string]string) *v1beta1.ManagedClusterSet {
	t.Helper()
	s := Must(Admin(t).ClusterV1beta1().ManagedClusterSets().Create(t.Context(), LabelSet(name, labels), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { DeleteSet(t, name) })
	return s
}

// ChangeSet updates the spec of a set of the shared hub as admin. It retries on conflicts, as the hub updates the status concurrently.
func ChangeSet(t *testing.T, name string, change func(*v1beta1.ManagedClusterSetSpec)) error {
	t.Helper()
	sets := Admin(t).ClusterV1beta1().ManagedClusterSets()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		s, err := sets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&s.Spec)
		return ErrorOf(sets.Update(t.Context(), s, metav1.UpdateOptions{}))
	})
}

// NewNamespace creates a namespace on the shared hub.
func NewNamespace(t *testing.T) string {
	t.Helper()
	name := Unique("ns")
	client := Kube(t, Hub(t).AdminConfig()).CoreV1().Namespaces()
	Must(client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	return name
}

// Binding returns a ManagedClusterSetBinding that does not exist yet.
func Binding(namespace, name, set string) *v1beta2.ManagedClusterSetBinding {
	return &v1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// InSet returns list options that select the members of a set.
func InSet(set string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.clusterSet=" + set}
}

// Members returns the clusters that a user sees in a set. An empty user name stands for the admin.
func Members(t *testing.T, who, set string) []string {
	t.Helper()
	config := Hub(t).AdminConfig()
	if who != "" {
		config = Hub(t).UserConfig(who)
	}
	list, err := Ours(t, config).ViewV1alpha1().ClusterSetMembers().
		List(t.Context(), metav1.ListOptions{FieldSelector: "spec.clusterSet=" + set})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, m := range list.Items {
		names = append(names, m.Spec.Cluster)
	}
	return names
}

// WantMembers fails the test unless a user sees exactly these clusters in a set. An empty user name stands for the admin.
func WantMembers(t *testing.T, who, set string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := Members(t, who, set); !slices.Equal(got, want) {
		t.Errorf("%s sees %v in %s, want %v", who, got, set, want)
	}
}

// OpenMCPGroup is the API group of clusters on request.
const OpenMCPGroup = "clusters.openmcp.cloud"

// OpenMCPCluster returns a Cluster of a profile that does not exist yet.
func OpenMCPCluster(namespace, profile string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Unique("cluster")},
		Spec:       v1alpha1.ClusterSpec{Profile: profile, Tenancy: v1alpha1.TENANCY_SHARED, Purposes: []string{"mcp"}},
	}
}

// ProvidersNamespace is the namespace of the configurations of cluster providers.
const ProvidersNamespace = "openmcp-system"
