// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Owners returns the owner references of the decisions of a placement: it is the only owner, so that they are deleted with it, whatever else
// exists.
func Owners(p *clusterv1beta1.Placement) []metav1.OwnerReference {
	// Without blockOwnerDeletion: nothing waits for the deletion of decisions.
	return []metav1.OwnerReference{{
		APIVersion: clusterv1beta1.SchemeGroupVersion.String(), Kind: "Placement", Name: p.Name, UID: p.UID, Controller: new(true),
	}}
}

// Owned reports whether a decision has the right owners. A decision of an earlier Placement of the same name is deleted with that one.
func Owned(d *clusterv1beta1.PlacementDecision, p *clusterv1beta1.Placement) bool {
	return len(d.OwnerReferences) == 1 && metav1.IsControlledBy(d, p)
}

// OwnLabels returns its labels of the placement and the group.
func OwnLabels(d *clusterv1beta1.PlacementDecision) map[string]string {
	labels := map[string]string{}
	for _, key := range []string{
		clusterv1beta1.PlacementLabel, clusterv1beta1.DecisionGroupIndexLabel, clusterv1beta1.DecisionGroupNameLabel,
	} {
		if value, has := d.Labels[key]; has {
			labels[key] = value
		}
	}
	return labels
}
