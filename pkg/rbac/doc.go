// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac computes which names of one cluster-scoped resource a user may reach, from ClusterRoles and
// ClusterRoleBindings alone. It serves what an authorizer cannot answer: not "may they get this set?" but "which sets
// may they get?", for every list and for every open watch, without asking once per name. The visibility of members is
// decided by it.
//
// The rules are those of the RBAC authorizer of Kubernetes v1.37 for a request without a namespace
// (k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go and
// pkg/apis/rbac/v1/evaluation_helpers.go). What that authorizer does not look at, this package does not look at
// either: the apiGroup of a subject and of a roleRef (the validation of the API server has fixed both before anything
// is stored) and the aggregationRule of a ClusterRole (a controller copies what it selects into the rules).
// Rights that come from another authorizer (webhook, node, CEL) are not seen.
//
// An Index has one writer, who feeds it from the watches of both kinds in any order. A Snapshot is what readers use;
// it never changes.
package rbac
