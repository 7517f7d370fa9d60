// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools keeps the code generators in go.mod.
package tools

import (
	_ "k8s.io/code-generator"
	_ "k8s.io/kube-openapi/cmd/openapi-gen"
)
