// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet reconciles the agents of Klusterlets: it applies their objects to the cluster that runs the pods and to the managed cluster,
// until the Klusterlet is deleted. See docs/design/detached.md.
package klusterlet
