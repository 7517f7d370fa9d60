// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selector answers which clusters a set selects, and by which label it claims them.
package selector

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

// For returns the selector of a set's clusters. A nil labelSelector matches nothing, an empty one everything.
func For(set *cluster.ManagedClusterSet) (labels.Selector, error) {
	s := &set.Spec.ClusterSelector
	if key, value, ok := ExclusivePair(set); ok {
		return labels.SelectorFromSet(labels.Set{key: value}), nil
	}
	if s.SelectorType == cluster.LabelSelector {
		return metav1.LabelSelectorAsSelector(s.LabelSelector)
	}
	return nil, fmt.Errorf("selectorType is not right: %s", s.SelectorType)
}

// ForV1beta1 is For of a set as v1beta1 clients have it.
func ForV1beta1(set *v1beta1.ManagedClusterSet) (labels.Selector, error) {
	internal := &cluster.ManagedClusterSet{}
	if err := v1beta1.Convert_v1beta1_ManagedClusterSet_To_cluster_ManagedClusterSet(set, internal, nil); err != nil {
		return nil, err
	}
	return For(internal)
}

// ForV1beta2 is For of a set as v1beta2 clients have it.
func ForV1beta2(set *v1beta2.ManagedClusterSet) (labels.Selector, error) {
	internal := &cluster.ManagedClusterSet{}
	if err := v1beta2.Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(set, internal, nil); err != nil {
		return nil, err
	}
	return For(internal)
}

// ExclusivePair is the label that a set claims for itself. ok is false for a set that claims none.
func ExclusivePair(set *cluster.ManagedClusterSet) (key, value string, ok bool) {
	s := &set.Spec.ClusterSelector
	switch s.SelectorType {
	case "", cluster.ExclusiveClusterSetLabel:
		return cluster.ClusterSetLabel, set.Name, true
	case cluster.ExclusiveLabel:
		if s.ExclusiveLabel != nil {
			return s.ExclusiveLabel.Key, s.ExclusiveLabel.Value, true
		}
	}
	return "", "", false
}

// Describe returns the set's selectorType as v1beta1 writes it, and its selector in kubectl's notation: "" when every
// cluster is selected, "<none>" when no cluster can be.
func Describe(set *cluster.ManagedClusterSet) (selectorType, text string) {
	selectorType = string(set.Spec.ClusterSelector.SelectorType)
	switch set.Spec.ClusterSelector.SelectorType {
	case "", cluster.ExclusiveClusterSetLabel:
		selectorType = string(v1beta1.LegacyClusterSetLabel)
	}
	s, err := For(set)
	if err != nil {
		return selectorType, "<none>"
	}
	if _, selectable := s.Requirements(); !selectable {
		return selectorType, "<none>"
	}
	return selectorType, s.String()
}
