// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// Indices of the caches.
const (
	ByCluster = "spec.clusterRef"
	ByProfile = "spec.profile"
)

// Scheme has the kinds that providers use on the hub.
var Scheme = NewScheme(v1alpha1.AddToScheme, corev1.AddToScheme, authenticationv1.AddToScheme)

// NewScheme returns a scheme with the added kinds.
func NewScheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, f := range add {
		utilruntime.Must(f(scheme))
	}
	return scheme
}
