// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:register-gen=false
// +groupName=clusters.openmcp.cloud

// Package openmcp contains the internal types of clusters.openmcp.cloud, which storage, strategies and admission use.
package openmcp
