// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// The items of our lists say their kind. Those of custom resources do, and clients take the kind from there. What a list is
// converted from shares its memory with what it becomes, so the items are copied before they are changed.

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: SchemeGroupVersion.String(), Kind: kind}
}

// Convert_openmcp_ClusterProfileList_To_v1alpha1_ClusterProfileList lets each item say its kind.
func Convert_openmcp_ClusterProfileList_To_v1alpha1_ClusterProfileList(in *openmcp.ClusterProfileList, out *ClusterProfileList, s conversion.Scope) error {
	err := autoConvert_openmcp_ClusterProfileList_To_v1alpha1_ClusterProfileList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = typeMeta("ClusterProfile")
	}
	return err
}

// Convert_v1alpha1_ClusterProfileList_To_openmcp_ClusterProfileList takes that back.
func Convert_v1alpha1_ClusterProfileList_To_openmcp_ClusterProfileList(in *ClusterProfileList, out *openmcp.ClusterProfileList, s conversion.Scope) error {
	err := autoConvert_v1alpha1_ClusterProfileList_To_openmcp_ClusterProfileList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = metav1.TypeMeta{}
	}
	return err
}

// Convert_openmcp_ClusterList_To_v1alpha1_ClusterList lets each item say its kind.
func Convert_openmcp_ClusterList_To_v1alpha1_ClusterList(in *openmcp.ClusterList, out *ClusterList, s conversion.Scope) error {
	err := autoConvert_openmcp_ClusterList_To_v1alpha1_ClusterList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = typeMeta("Cluster")
	}
	return err
}

// Convert_v1alpha1_ClusterList_To_openmcp_ClusterList takes that back.
func Convert_v1alpha1_ClusterList_To_openmcp_ClusterList(in *ClusterList, out *openmcp.ClusterList, s conversion.Scope) error {
	err := autoConvert_v1alpha1_ClusterList_To_openmcp_ClusterList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = metav1.TypeMeta{}
	}
	return err
}

// Convert_openmcp_ClusterRequestList_To_v1alpha1_ClusterRequestList lets each item say its kind.
func Convert_openmcp_ClusterRequestList_To_v1alpha1_ClusterRequestList(in *openmcp.ClusterRequestList, out *ClusterRequestList, s conversion.Scope) error {
	err := autoConvert_openmcp_ClusterRequestList_To_v1alpha1_ClusterRequestList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = typeMeta("ClusterRequest")
	}
	return err
}

// Convert_v1alpha1_ClusterRequestList_To_openmcp_ClusterRequestList takes that back.
func Convert_v1alpha1_ClusterRequestList_To_openmcp_ClusterRequestList(in *ClusterRequestList, out *openmcp.ClusterRequestList, s conversion.Scope) error {
	err := autoConvert_v1alpha1_ClusterRequestList_To_openmcp_ClusterRequestList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = metav1.TypeMeta{}
	}
	return err
}

// Convert_openmcp_AccessRequestList_To_v1alpha1_AccessRequestList lets each item say its kind.
func Convert_openmcp_AccessRequestList_To_v1alpha1_AccessRequestList(in *openmcp.AccessRequestList, out *AccessRequestList, s conversion.Scope) error {
	err := autoConvert_openmcp_AccessRequestList_To_v1alpha1_AccessRequestList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = typeMeta("AccessRequest")
	}
	return err
}

// Convert_v1alpha1_AccessRequestList_To_openmcp_AccessRequestList takes that back.
func Convert_v1alpha1_AccessRequestList_To_openmcp_AccessRequestList(in *AccessRequestList, out *openmcp.AccessRequestList, s conversion.Scope) error {
	err := autoConvert_v1alpha1_AccessRequestList_To_openmcp_AccessRequestList(in, out, s)
	out.Items = slices.Clone(out.Items)
	for i := range out.Items {
		out.Items[i].TypeMeta = metav1.TypeMeta{}
	}
	return err
}
