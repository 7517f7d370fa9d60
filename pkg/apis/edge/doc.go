// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:register-gen=false
// +groupName=edge.clusterhub.dev

// Package edge contains the internal version of the edge.clusterhub.dev API, which storage, strategies and admission use.
package edge
