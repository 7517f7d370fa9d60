// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

const (
	// K8sVersionLabel is the label with the Kubernetes version of a Cluster. Its provider sets it.
	K8sVersionLabel = GroupName + "/k8sversion"
	// ProviderLabel is the label with the provider that is responsible for a Cluster or an AccessRequest.
	ProviderLabel = GroupName + "/provider"
	// ProviderInfoAnnotation is the annotation with the provider's information about a Cluster, which tables show.
	ProviderInfoAnnotation = GroupName + "/providerinfo"
	// AccessFinalizer is the finalizer of a Cluster that is removed after all AccessRequests for it are gone.
	AccessFinalizer = "access." + GroupName + "/requests"
	// OIDCProviderSystem is the name that no OIDC provider of a request can have.
	OIDCProviderSystem = "system"
)
