// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterhub/clusterhub/pkg/apis/view
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=dev.clusterhub.api.view.v1alpha1
// +groupName=view.clusterhub.dev

// Package v1alpha1 contains the v1alpha1 version of the API group view.clusterhub.dev.
package v1alpha1
