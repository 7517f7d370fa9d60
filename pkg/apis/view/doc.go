// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:register-gen=false
// +groupName=view.clusterhub.dev

// Package view contains the internal types of view.clusterhub.dev. Its kinds are read-only and not stored.
package view
