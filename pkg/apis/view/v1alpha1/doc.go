// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterhub/clusterhub/pkg/apis/view
// +k8s:defaulter-gen=TypeMeta
// +k8s:openapi-model-package=dev.clusterhub.api.view.v1alpha1
// +groupName=view.clusterhub.dev

// Package v1alpha1 is the served v1alpha1 form of view.clusterhub.dev.
package v1alpha1
