// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package visibility holds the kind by which replicas of hub-apiserver agree on when a change of the hub's RBAC rules,
// and so of what users see, took effect. It is stored next to the clusters and sets and is not served.
package visibility
