// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Squeeze replaces several spaces by one: the width of columns is up to the printer.
func Squeeze(table string) string {
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

// NewFleet returns a hub with two clusters: c1 has joined by certificate, and c2, by AWS IAM, has not been accepted.
func NewFleet(t *testing.T) (*Server, string) {
	t.Helper()
	c1 := NewCluster("c1", map[string]string{"cluster.open-cluster-management.io/clusterset": "payments", "env": "prod"})
	c1.Spec.HubAcceptsClient = true
	c1.Status.Version.Kubernetes = "v1.37.1"
	c1.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}
	c1.Status.Conditions = []metav1.Condition{
		{Type: registration.ConditionJoined, Status: metav1.ConditionTrue}, {Type: registration.ConditionAvailable, Status: metav1.ConditionFalse},
	}
	c2 := NewCluster("c2", nil)
	c2.Annotations = map[string]string{registration.AnnotationManagedClusterARN: ManagedARN}
	production := NewSet("production")
	production.Spec.ManagedNamespaces = []v1beta2.ManagedNamespaceConfig{{Name: "web"}, {Name: "db"}}
	production.Status.Conditions = []metav1.Condition{{Type: v1beta2.ManagedClusterSetConditionEmpty, Message: "1 ManagedClusters selected"}}
	s := NewServer(t, c1, c2, production, NewSet("empty"), NewMember("production", "c1", "env=prod"), NewMember("global", "c2", ""),
		&v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "production"},
			Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: "production"}},
		&v1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "production"},
			Spec: v1beta2.ManagedClusterSetBindingSpec{ClusterSet: "production"}})
	return s, Kubeconfig(t, map[string]*Server{"hub": s})
}

// NewCluster returns a ManagedCluster.
func NewCluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// NewSet returns a set that selects by labels.
func NewSet(name string) *v1beta2.ManagedClusterSet {
	return &v1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta2.ManagedClusterSetSpec{ClusterSelector: v1beta2.ManagedClusterSelector{SelectorType: v1beta2.LabelSelector}}}
}

// NewMember returns a member of a set.
func NewMember(set, cluster, selector string) *viewv1alpha1.ClusterSetMember {
	return &viewv1alpha1.ClusterSetMember{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "." + set},
		Spec:       viewv1alpha1.ClusterSetMemberSpec{ClusterSet: set, Cluster: cluster},
		Status: viewv1alpha1.ClusterSetMemberStatus{Joined: "True", Available: "Unknown",
			SelectedBy: viewv1alpha1.SelectedBy{Selector: selector}},
	}
}
