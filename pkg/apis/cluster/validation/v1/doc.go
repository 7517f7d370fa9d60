// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 validates the bounds that the types of cluster.open-cluster-management.io/v1 declare by markers. It is separate from the types, so that
// clients do not link it.
package v1

import "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"

var localSchemeBuilder = &v1.SchemeBuilder
