// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install registers every version of edge.clusterhub.dev in a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// Install adds the internal and the served version.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(edge.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
}
