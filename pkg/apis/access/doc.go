// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package

// Package access holds the kind by which replicas of hub-apiserver agree on when a change of the hub's RBAC rules
// took effect. It is stored next to the clusters and sets and is not served.
package access
