// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement chooses clusters for placements. It is pure: it has no clients, and the time is an argument. Its inputs are clusters, sets,
// scores, a placement and its last decisions; its outputs are the writes, in their order.
//
// Package spec compiles a placement's spec into a Program, once for each generation: selectors and CEL are compiled there. Package run runs it
// against a Snapshot, and explains for the same run why each cluster was chosen or not. Package fleet has the clusters and sets. Scheduler does it
// for all placements of a hub: it is called for each change, and knows which placements a change can affect.
//
// The reasons of the design are in docs/design/placement.md.
package placement
