// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package golangci keeps the linter's version in a go.mod of its own: what it requires must not reach the product's.
package golangci

import (
	_ "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
)
