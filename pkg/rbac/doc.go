// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac computes which names of one cluster-scoped resource a user may reach, from ClusterRoles and ClusterRoleBindings alone. It answers a
// question that an authorizer cannot: not "may the user get this set?" but "which sets may the user get?", for every list and for every open watch,
// without a check for each name. It determines the visibility of members.
//
// The rules are those of the RBAC authorizer of Kubernetes v1.37 for a request without a namespace (k8s.io/kubernetes
// plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go and pkg/apis/rbac/v1/evaluation_helpers.go). Like that authorizer,
// this package ignores the apiGroup of a subject and of a roleRef (the validation of the API server has fixed both before anything is stored) and the
// aggregationRule of a ClusterRole (a controller copies the selected rules into the role). It does not consider rights of other authorizers (webhook,
// node, CEL).
//
// A Permission is what a request needs: a verb on a resource, with the rule that grants it.
//
// An Index has one writer, which updates it from the watches of both kinds in any order. Readers use a Snapshot, which never changes.
package rbac
