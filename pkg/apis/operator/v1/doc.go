// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=operator.open-cluster-management.io

// Package v1 has the kinds that install hubs and agents: ClusterManager and Klusterlet, as Open Cluster Management has them. A cluster
// on which they are needed has no hub yet, so they are CustomResourceDefinitions, which are generated from these types to
// artifacts/deploy/operator. What is ours alone is in the fields called clusterhub. In all others, fields that are not known here are
// kept, so that an object which is of use to Open Cluster Management's programs stays so.
package v1
