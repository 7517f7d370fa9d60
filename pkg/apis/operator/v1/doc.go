// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=operator.open-cluster-management.io

// Package v1 contains the kinds that install hubs and agents: ClusterManager and Klusterlet, compatible with those of Open Cluster
// Management. A cluster that needs them has no hub yet, so they are CustomResourceDefinitions, which are generated from these types to
// artifacts/deploy/operator. Additions of Clusterhub are in the fields named clusterhub. All other structs preserve unknown fields, so that
// objects remain usable by Open Cluster Management's programs.
package v1
