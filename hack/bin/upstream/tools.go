// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package upstream keeps the placement controller and the work agent of Open Cluster Management in go.mod, which tests put in
// the place of ours. It is a module of its own, because they are built with older libraries of Kubernetes than the product.
package upstream

import (
	_ "open-cluster-management.io/ocm/cmd/placement"
	_ "open-cluster-management.io/ocm/cmd/work"
)
