// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=work.open-cluster-management.io

// Package work holds the internal form of the work.open-cluster-management.io kinds: the one shape that storage,
// strategies and admission work with, whatever version a client speaks.
package work
