// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters get a change now, which clusters wait, and for what.
//
// It is pure: the state of the clusters and the time are arguments. It is for any controller that rolls something out to the clusters of a
// placement. The strategies are those of Open Cluster Management: all at once; a number at a time; group by group.
//
// The state of a cluster belongs to one generation of its work. Conditions of an earlier generation do not count, nor do their transition times:
// conditions keep the time of their last change, which may be long before the work was written. So soak time and deadline begin at times that the
// caller has recorded, or later.
package rollout
