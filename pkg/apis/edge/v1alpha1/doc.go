// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterhub/clusterhub/pkg/apis/edge
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=dev.clusterhub.edge.v1alpha1
// +groupName=edge.clusterhub.dev

// Package v1alpha1 contains the v1alpha1 version of the edge.clusterhub.dev API. The fields of specs have the same names as in Open Horizon's files.
package v1alpha1
