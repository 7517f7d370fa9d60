// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Convert_v1beta1_ManagedClusterSelector_To_cluster_ManagedClusterSelector gives the three spellings of the
// set-name selector their one internal form.
func Convert_v1beta1_ManagedClusterSelector_To_cluster_ManagedClusterSelector(in *ManagedClusterSelector, out *cluster.ManagedClusterSelector, s conversion.Scope) error {
	if err := autoConvert_v1beta1_ManagedClusterSelector_To_cluster_ManagedClusterSelector(in, out, s); err != nil {
		return err
	}
	switch in.SelectorType {
	case "", LegacyClusterSetLabel, ExclusiveClusterSetLabel:
		out.SelectorType = cluster.ExclusiveClusterSetLabel
	}
	return nil
}

// Convert_cluster_ManagedClusterSelector_To_v1beta1_ManagedClusterSelector shows the set-name selector as v1beta1
// names it.
func Convert_cluster_ManagedClusterSelector_To_v1beta1_ManagedClusterSelector(in *cluster.ManagedClusterSelector, out *ManagedClusterSelector, s conversion.Scope) error {
	if err := autoConvert_cluster_ManagedClusterSelector_To_v1beta1_ManagedClusterSelector(in, out, s); err != nil {
		return err
	}
	if in.SelectorType == cluster.ExclusiveClusterSetLabel {
		out.SelectorType = LegacyClusterSetLabel
	}
	return nil
}

// Convert_cluster_PlacementDecisionStatus_To_v1beta1_PlacementDecisionStatus shows no clusters as an empty list, never as
// null: programs of the field read the list without a look at what it is.
func Convert_cluster_PlacementDecisionStatus_To_v1beta1_PlacementDecisionStatus(in *cluster.PlacementDecisionStatus, out *PlacementDecisionStatus, s conversion.Scope) error {
	if err := autoConvert_cluster_PlacementDecisionStatus_To_v1beta1_PlacementDecisionStatus(in, out, s); err != nil {
		return err
	}
	if out.Decisions == nil {
		out.Decisions = []ClusterDecision{}
	}
	return nil
}

func init() {
	localSchemeBuilder.Register(addFieldLabelConversions)
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	if err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedClusterSet"), cluster.SetFieldLabel); err != nil {
		return err
	}
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedClusterSetBinding"), cluster.BindingFieldLabel)
}
