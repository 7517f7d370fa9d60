// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet makes agents of Klusterlets: what they consist of, on the cluster that runs the pods and on the one that they serve,
// until the Klusterlet is deleted. See docs/design/detached.md.
package klusterlet
