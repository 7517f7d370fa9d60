// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge decides where services of edge nodes go. It is pure: nodes, services, and what deploys them go in; for each node comes out whether
// it gets a version, which one, in which namespace, and why.
//
// NewNode and NewDeployment read what people have written, once. Decide is the one function that decides; controllers and deploycheck both
// ask it. Once finds what would be in one namespace of a cluster twice. Analyze, Service.Warnings and Pattern.Check say what can be known when
// something is published, before there is any node.
//
// The rules, and what was decided where the design of Open Horizon leaves it open: docs/design/edge.md.
package edge
