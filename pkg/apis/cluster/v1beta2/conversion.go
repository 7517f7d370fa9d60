// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Convert_cluster_ManagedClusterSelector_To_v1beta2_ManagedClusterSelector converts all but an ExclusiveLabel, which
// takes the set's name and annotations: see Convert_cluster_ManagedClusterSet_To_v1beta2_ManagedClusterSet.
func Convert_cluster_ManagedClusterSelector_To_v1beta2_ManagedClusterSelector(in *cluster.ManagedClusterSelector, out *ManagedClusterSelector, s conversion.Scope) error {
	return autoConvert_cluster_ManagedClusterSelector_To_v1beta2_ManagedClusterSelector(in, out, s)
}

// Convert_v1beta2_ManagedClusterSelector_To_cluster_ManagedClusterSelector gives the three spellings of the
// set-name selector their one internal form.
func Convert_v1beta2_ManagedClusterSelector_To_cluster_ManagedClusterSelector(in *ManagedClusterSelector, out *cluster.ManagedClusterSelector, s conversion.Scope) error {
	if err := autoConvert_v1beta2_ManagedClusterSelector_To_cluster_ManagedClusterSelector(in, out, s); err != nil {
		return err
	}
	switch in.SelectorType {
	case "", ExclusiveClusterSetLabel, LegacyClusterSetLabel:
		out.SelectorType = cluster.ExclusiveClusterSetLabel
	}
	return nil
}

// Convert_cluster_ManagedClusterSet_To_v1beta2_ManagedClusterSet shows a set with an ExclusiveLabel as one that
// selects the same clusters, and keeps the label in SelectorAnnotation.
func Convert_cluster_ManagedClusterSet_To_v1beta2_ManagedClusterSet(in *cluster.ManagedClusterSet, out *ManagedClusterSet, s conversion.Scope) error {
	if err := autoConvert_cluster_ManagedClusterSet_To_v1beta2_ManagedClusterSet(in, out, s); err != nil {
		return err
	}
	label := in.Spec.ClusterSelector.ExclusiveLabel
	if in.Spec.ClusterSelector.SelectorType != cluster.ExclusiveLabel || label == nil {
		// One that a v1beta1 client made up would turn the set into another when a v1beta2 client writes it back.
		if _, madeUp := in.Annotations[SelectorAnnotation]; madeUp {
			out.Annotations = maps.Clone(in.Annotations)
			delete(out.Annotations, SelectorAnnotation)
		}
		return nil
	}
	data, err := json.Marshal(v1beta1.ManagedClusterSelector{
		SelectorType:   v1beta1.ExclusiveLabel,
		ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: label.Key, Value: label.Value},
	})
	if err != nil {
		return err
	}
	out.Annotations = maps.Clone(in.Annotations)
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[SelectorAnnotation] = string(data)
	out.Spec.ClusterSelector = shown(label.Key, label.Value, in.Name)
	return nil
}

// Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet restores the ExclusiveLabel of a set whose selector
// is still the one that was shown for it.
func Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(in *ManagedClusterSet, out *cluster.ManagedClusterSet, s conversion.Scope) error {
	if err := autoConvert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(in, out, s); err != nil {
		return err
	}
	data, ok := in.Annotations[SelectorAnnotation]
	if !ok {
		return nil
	}
	out.Annotations = maps.Clone(in.Annotations)
	delete(out.Annotations, SelectorAnnotation)
	var kept v1beta1.ManagedClusterSelector
	if err := json.Unmarshal([]byte(data), &kept); err != nil ||
		kept.SelectorType != v1beta1.ExclusiveLabel || kept.ExclusiveLabel == nil {
		// The annotation is not from the server: use the selector of the client.
		return nil
	}
	label := kept.ExclusiveLabel
	if equality.Semantic.DeepEqual(in.Spec.ClusterSelector, shown(label.Key, label.Value, in.Name)) {
		out.Spec.ClusterSelector = cluster.ManagedClusterSelector{
			SelectorType:   cluster.ExclusiveLabel,
			ExclusiveLabel: &cluster.ManagedClusterLabel{Key: label.Key, Value: label.Value},
		}
	}
	return nil
}

// shown is the v1beta2 selector that selects the same clusters as the exclusive label of the set with this name.
func shown(key, value, setName string) ManagedClusterSelector {
	if key == cluster.ClusterSetLabel && value == setName {
		return ManagedClusterSelector{SelectorType: ExclusiveClusterSetLabel}
	}
	return ManagedClusterSelector{
		SelectorType:  LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
	}
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
