// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:register-gen=false
// +groupName=cluster.open-cluster-management.io

// Package cluster contains the internal types of cluster.open-cluster-management.io, which storage, strategies and admission use for all versions.
package cluster
