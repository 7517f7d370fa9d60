// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream tests that our types and those of Open Cluster Management's Go module are the same in JSON. It is a module of its own, so
// that theirs is none of the product's dependencies.
package upstream
