// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:register-gen=false
// +groupName=work.open-cluster-management.io

// Package work contains the internal types of work.open-cluster-management.io, which storage, strategies and admission use for all versions.
package work
