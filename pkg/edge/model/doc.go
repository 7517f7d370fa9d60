// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model reads objects of edge.clusterhub.dev as what pkg/edge decides about. It is pure, and the one place where that is done:
// server, controllers and command line all decide about the same.
//
// Node, Service, Policy, PatternServices and Pattern are of the version v1alpha1; what has internal objects converts them to it first. What
// is in an archive is kept in the status of its service (ServiceStatus, Contents), so that deciding needs no archive. Names of policies and
// patterns have their namespace before them (Qualified): the same name in two namespaces is two of them.
package model
