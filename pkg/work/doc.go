// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work has no code of its own: what is computed when works are delivered is in the packages below it, and its tests
// try them together.
//
// Why they are as they are: docs/design/works.md.
package work
