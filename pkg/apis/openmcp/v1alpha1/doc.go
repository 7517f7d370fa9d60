// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterhub/clusterhub/pkg/apis/openmcp
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=cloud.openmcp.clusters.v1alpha1
// +groupName=clusters.openmcp.cloud
// +groupGoName=OpenMCP

// Package v1alpha1 contains the v1alpha1 version of the API group clusters.openmcp.cloud.
package v1alpha1
