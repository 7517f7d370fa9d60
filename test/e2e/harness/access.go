// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// OpenMCPGroup is the API group of clusters on request.
const OpenMCPGroup = "clusters.openmcp.cloud"

// OpenMCPCluster returns a Cluster of a profile that does not exist yet.
func OpenMCPCluster(namespace, profile string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Unique("cluster")},
		Spec:       v1alpha1.ClusterSpec{Profile: profile, Tenancy: v1alpha1.TENANCY_SHARED, Purposes: []string{"mcp"}},
	}
}

// ProvidersNamespace is the namespace of the configurations of cluster providers.
const ProvidersNamespace = "openmcp-system"
