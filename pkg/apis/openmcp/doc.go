// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=clusters.openmcp.cloud

// Package openmcp holds the internal form of the clusters.openmcp.cloud kinds: the one shape that storage, strategies and
// admission work with.
package openmcp
