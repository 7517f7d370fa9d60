// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=edge.clusterhub.dev

// Package edge holds the internal form of the edge.clusterhub.dev kinds: the one shape that storage, strategies and admission work with.
package edge
