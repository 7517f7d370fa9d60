// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of clusters.openmcp.cloud in a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	_ "github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation/v1alpha1" // registers the validation of declared bounds
)

// Install adds the internal and the served version, and the validation of bounds.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(openmcp.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
}
