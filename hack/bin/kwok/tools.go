// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kwok keeps kwok in go.mod, which plays the kubelet in tests. It is a module of its own, because it is built with
// older libraries of Kubernetes than the product.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
