// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

func (f *fixture) placement() *clusterv1beta1.Placement {
	f.Helper()
	p := &clusterv1beta1.Placement{}
	if err := f.client.Get(f.Context(), key, p); err != nil {
		f.Fatal(err)
	}
	return p
}

// decisions returns what readers see: the name, the group and the clusters of each PlacementDecision with the label.
func (f *fixture) decisions() (all []string) {
	f.Helper()
	list := &clusterv1beta1.PlacementDecisionList{}
	if err := f.client.List(f.Context(), list, client.MatchingLabels{clusterv1beta1.PlacementLabel: key.Name}); err != nil {
		f.Fatal(err)
	}
	for _, d := range list.Items {
		text := d.Name + " " + d.Labels[clusterv1beta1.DecisionGroupIndexLabel] + ":"
		for _, one := range d.Status.Decisions {
			text += " " + one.ClusterName
		}
		all = append(all, text)
	}
	return all
}

// clusters returns the clusters of all decisions.
func (f *fixture) clusters() map[string]bool {
	f.Helper()
	all := map[string]bool{}
	for _, text := range f.decisions() {
		for _, name := range strings.Fields(text)[2:] {
			all[name] = true
		}
	}
	return all
}

func (f *fixture) has(want ...string) {
	f.Helper()
	if got := f.decisions(); !slices.Equal(got, want) {
		f.Fatalf("decisions %q, want %q", got, want)
	}
}

func binding(set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: set}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// managed returns a cluster in the set s1, with labels k=v.
func managed(name string, labels ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "s1"}}}
	for _, label := range labels {
		k, v, _ := strings.Cut(label, "=")
		c.Labels[k] = v
	}
	return c
}

func many(n int, labels ...string) (all []client.Object) {
	for i := range n {
		all = append(all, managed(fmt.Sprintf("c%03d", i), labels...))
	}
	return all
}

// place returns the placement p for so many clusters with the label a=b, or for all of them if number is negative. Groups are by the label group.
func place(number int32, groups ...string) *clusterv1beta1.Placement {
	p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
	if number >= 0 {
		p.Spec.NumberOfClusters = &number
	}
	p.Spec.Predicates = make([]clusterv1beta1.ClusterPredicate, 1)
	p.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"a": "b"}
	for _, name := range groups {
		group := clusterv1beta1.DecisionGroup{GroupName: name}
		group.ClusterSelector.LabelSelector.MatchLabels = map[string]string{"group": name}
		p.Spec.DecisionStrategy.GroupStrategy.DecisionGroups = append(p.Spec.DecisionStrategy.GroupStrategy.DecisionGroups, group)
	}
	return p
}

// stays fails if a cluster is in no decision although it is chosen before and after.
func stays(f *fixture, before, after map[string]bool, when string) {
	f.Helper()
	now := f.clusters()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] && !now[name] {
			f.Fatalf("%s: %s is in no decision, after %q", when, name, f.effects)
		}
	}
}
