// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

const (
	// K8sVersionLabel is the Kubernetes version that a Cluster has. Its provider sets it.
	K8sVersionLabel = GroupName + "/k8sversion"
	// ProviderLabel is the provider that is responsible for a Cluster or an AccessRequest.
	ProviderLabel = GroupName + "/provider"
	// ProviderInfoAnnotation is information of the provider about a Cluster, which tables show.
	ProviderInfoAnnotation = GroupName + "/providerinfo"
	// AccessFinalizer keeps a Cluster until no AccessRequest is for it.
	AccessFinalizer = "access." + GroupName + "/requests"
	// OIDCProviderSystem is the name that no OIDC provider of a request may have.
	OIDCProviderSystem = "system"
)
