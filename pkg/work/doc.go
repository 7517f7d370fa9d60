// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package work has no code of its own: the packages below it compute what is needed to apply works, and its tests test them together.
//
// The design is described in docs/design/works.md.
package work
