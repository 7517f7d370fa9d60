// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterhub/clusterhub/pkg/apis/cluster
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=io.open-cluster-management.api.cluster.v1beta2
// +groupName=cluster.open-cluster-management.io

// Package v1beta2 contains the v1beta2 version of the API group cluster.open-cluster-management.io.
package v1beta2
