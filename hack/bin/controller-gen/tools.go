// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controllergen keeps the version of the generator of CustomResourceDefinitions in a go.mod of its own: what it requires must not
// reach the product's.
package controllergen

import (
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
)
