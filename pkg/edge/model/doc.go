// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model converts objects of edge.clusterhub.dev to the input of pkg/edge. It is pure, and the only place where that is done: server,
// controllers and command line all use the same input.
//
// Node, Service, Policy, PatternServices and Pattern are for the version v1alpha1; callers with internal objects convert them first. The contents of
// an archive are stored in the status of its service (ServiceStatus, Contents), so that decisions need no archive. Names of policies and patterns are
// qualified by their namespace (Qualified): the same name in two namespaces means two of them.
package model
