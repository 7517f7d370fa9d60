// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustermanager installs hubs on clusters for ClusterManagers. In mode Default the whole hub is on the cluster of the ClusterManager. In
// modes Detached and Hosted the servers run on that cluster, and the hub, which the user specifies with a Secret, has the objects of its API.
package clustermanager
