// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=view.clusterhub.dev

// Package view holds the internal form of the virtual, read-only view.clusterhub.dev kinds.
package view
