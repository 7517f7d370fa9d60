// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement chooses clusters for placements. It is pure: no clients, and no clock but an argument. Clusters, sets,
// scores, a placement and its last decisions go in; what to write comes out, in the order in which to write it.
//
// Compile makes a Program of a placement's spec, once for each generation: selectors and CEL are compiled there.
// Program.Schedule runs it against a State, and Program.Explain tells of the same run why each cluster was chosen or not.
// Hub does it for all placements of a hub: it is told of changes, and knows which placements each of them can touch. It consists of
// Fleet (clusters and sets), Loads (which cluster is in how many decisions) and Round (several placements in their order).
//
// Why it is as it is: docs/design/placement.md.
package placement
