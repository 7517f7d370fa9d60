// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package authenticator keeps the authenticator of EKS in go.mod. It is a module of its own, because it is built with
// older libraries of Kubernetes and AWS than the product.
package authenticator

import _ "sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator"
