// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides to which clusters something new is brought now, which clusters wait, and for what.
//
// It is pure: what is known of the clusters comes in, and so does the time. It serves any controller that brings one thing to the
// clusters of a placement. The strategies are those of Open Cluster Management: all at once; so many at a time; group by group.
//
// What is known of a cluster is of one generation of its work. Nothing is judged by conditions of a generation before, nor by when
// such a condition began: conditions keep the time of their last change, and that may be long before the work was written. So soak
// time and deadline begin at times that the caller has noted, or later.
package rollout
