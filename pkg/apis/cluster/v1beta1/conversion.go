// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"

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

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	if err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedClusterSet"), setFieldLabel); err != nil {
		return err
	}
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedClusterSetBinding"),
		func(label, value string) (string, string, error) {
			switch label {
			case "metadata.name", "metadata.namespace", "spec.clusterSet":
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is no field selector of managedclustersetbindings: use metadata.name, metadata.namespace or spec.clusterSet", label)
		})
}

// setFieldLabel maps the field selectors of sets to the internal form. The key of the label that puts a cluster
// into the set is spec.clusterSelector.exclusiveLabel.key for every exclusive set, whatever its selectorType, so
// that one watch can follow all sets that are exclusive on a key.
func setFieldLabel(label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "spec.clusterSelector.exclusiveLabel.key":
		return label, value, nil
	case "spec.clusterSelector.selectorType":
		switch value {
		case "", "LegacyClusterSetLabel":
			value = string(cluster.ExclusiveClusterSetLabel)
		}
		return label, value, nil
	}
	return "", "", fmt.Errorf("%q is no field selector of managedclustersets: use metadata.name, spec.clusterSelector.selectorType or spec.clusterSelector.exclusiveLabel.key", label)
}
