// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet has what placements choose from: the clusters and sets of a hub (Index), and the number of decisions of each cluster (Loads).
package fleet
