// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of cluster.open-cluster-management.io in a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	_ "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation/v1" // registers the validation of declared bounds
	_ "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation/v1alpha1"
	_ "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation/v1beta1"
	_ "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation/v1beta2"
)

// Install adds the internal and the served versions, in the order of preference for clients, and the validation of bounds.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(cluster.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(v1beta2.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(
		v1.SchemeGroupVersion, v1beta2.SchemeGroupVersion, v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion))
}
