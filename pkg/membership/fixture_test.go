// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

func newCluster(name string, pairs ...string) *cluster.ManagedCluster {
	c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	for i := 0; i < len(pairs); i += 2 {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[pairs[i]] = pairs[i+1]
	}
	return c
}

func newSet(name string, s cluster.ManagedClusterSelector) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       cluster.ManagedClusterSetSpec{ClusterSelector: s},
	}
}

func legacy() cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}
}

func exclusive(key, value string) cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{
		SelectorType: cluster.ExclusiveLabel, ExclusiveLabel: &cluster.ManagedClusterLabel{Key: key, Value: value}}
}

func selecting(s *metav1.LabelSelector) cluster.ManagedClusterSelector {
	return cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector, LabelSelector: s}
}

func matching(pairs ...string) cluster.ManagedClusterSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return selecting(s)
}

func requiring(key string, operator metav1.LabelSelectorOperator, values ...string) cluster.ManagedClusterSelector {
	return selecting(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: operator, Values: values}}})
}

// namesOf returns the names of the members of an index.
func namesOf(x *Index) []string {
	var names []string
	x.Members(func(m *view.ClusterSetMember) { names = append(names, m.Name) })
	slices.Sort(names)
	return names
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}

func texts(changes []Change) []string {
	var texts []string
	for _, c := range changes {
		texts = append(texts, fmt.Sprintf("%s %s", c.Type, c.Member.Name))
	}
	return texts
}
