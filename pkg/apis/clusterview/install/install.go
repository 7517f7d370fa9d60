// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of clusterview.open-cluster-management.io in a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
)

// Install adds the internal and the served versions. Install cluster.open-cluster-management.io first: if a type is encoded or decoded without a
// requested group, the scheme uses the group that was registered first.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(clusterview.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion))
}
