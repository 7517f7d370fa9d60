// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kube keeps what the local hub is built from in go.mod.
package kube

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
