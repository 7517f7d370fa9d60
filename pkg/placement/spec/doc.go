// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spec compiles the specs of placements. A Program reports which clusters the spec accepts, and whether a change of a cluster can affect
// its placement.
package spec
