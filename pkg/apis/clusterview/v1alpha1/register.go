// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the v1alpha1 version of the API group clusterview.open-cluster-management.io. Its ManagedClusterSets are those of
// cluster.open-cluster-management.io/v1beta2, as in stolostron's clusterview.
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
)

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: clusterview.GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that add this version to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, addFieldLabelConversions)
	// AddToScheme adds the kinds of this version to a scheme that has those of cluster.open-cluster-management.io.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&v1beta2.ManagedClusterSet{},
		&v1beta2.ManagedClusterSetList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

func addFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("ManagedClusterSet"), cluster.SetFieldLabel)
}
