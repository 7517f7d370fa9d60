// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustermanager makes hubs of clusters, as ClusterManagers say. In mode Default all of a hub is on the cluster that has the
// ClusterManager. In modes Detached and Hosted the servers run there, and the hub, which the user names by a Secret, has what
// belongs to its API.
package clustermanager
