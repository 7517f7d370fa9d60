// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge decides where services of edge nodes are deployed. It is pure: its input are nodes, services, and deployments; its output for each
// node is whether a version is deployed, which one, in which namespace, and why.
//
// NewNode and NewDeployment parse what users have written, once. Decide is the one function that decides; controllers and deploycheck both use it.
// Once finds services that would be in one namespace of a cluster twice. Analyze, Service.Warnings and Pattern.Check return what can be known when
// something is published, before any node exists.
//
// The rules, and the decisions where the design of Open Horizon leaves room, are described in docs/design/edge.md.
package edge
