// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package driver has what the ways of registering a cluster, the drivers, have in common. The reconciler of
// pkg/controllers/registration/clusteracceptance calls them, and itself creates what every cluster needs, whatever its driver.
package driver

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// Record is the identity that a driver grants to a cluster, in a form that only the driver reads. The hub stores it where the cluster's agent
// cannot change it, before anything is granted and until all of it has been revoked: the annotations of a cluster may change at any time, its
// record may not.
type Record string

// Driver grants clusters that register by it their identity on the hub, and revokes it. Its methods are called for several clusters concurrently,
// and may be called again for what has been done already: a process may end at any line, and its successor starts from the record.
type Driver interface {
	// Name is the name of the driver in --registration-drivers.
	Name() string
	// Handles reports whether a cluster registers by this driver. Of several that do, the first counts.
	Handles(cluster *clusterv1.ManagedCluster) bool
	// Plan returns the identity for a cluster when it is accepted. It sends no request. An error is about the annotations of the cluster, and is
	// shown in its conditions.
	Plan(cluster *clusterv1.ManagedCluster) (Record, error)
	// Grant creates what the record says, and reverts drift. After an error it is retried, seldom if that is a Terminal one. The error is shown in
	// the cluster's conditions: it must not contain secrets. A Warning is no failure.
	Grant(ctx context.Context, cluster string, record Record) error
	// Revoke deletes what Grant has created, or a part of it. It does not fail for what does not exist.
	Revoke(ctx context.Context, cluster string, record Record) error
	// CheckInterval is the interval of calls of Grant for a granted cluster, to revert drift; 0 is never.
	CheckInterval() time.Duration
	// AutoApproves reports whether a cluster is accepted without an admin. It is called only with the feature gate ManagedClusterAutoApproval, and
	// only for clusters that have never been accepted.
	AutoApproves(cluster *clusterv1.ManagedCluster) bool
}

// Watcher is a Driver whose AutoApproves depends on more than the cluster. It is called again whenever one of these objects changes that has the
// cluster's name in the label pkg/registration.ClusterNameLabel.
type Watcher interface {
	Watches() []client.Object
}

// Explainer is a Driver that returns why a cluster is left to an admin although it may seem to need none, or "".
type Explainer interface {
	WhyNot(cluster *clusterv1.ManagedCluster) string
}

// Exclusive is a Driver whose identities are of one cluster each. A cluster may claim the identity of another: it gets no identity that another one
// has, and needs an admin for one that another one claims.
type Exclusive interface {
	// Identity returns the identity of a record, or "".
	Identity(record Record) string
}

// Mover is a Driver that can change the identity of an accepted cluster when its flags have changed.
type Mover interface {
	// Move returns the record that a cluster must have instead, or the same one. It is called before Grant, and its result is written before that:
	// so it also names what must be revoked of the old one. It sends no request.
	Move(cluster string, rec Record) Record
	// Same reports whether two records differ at most in that.
	Same(a, b Record) bool
}

// Drivers are the enabled drivers, in the order of precedence.
type Drivers []Driver

// For returns the driver of a cluster.
func (d Drivers) For(cluster *clusterv1.ManagedCluster) (Driver, error) {
	for _, driver := range d {
		if driver.Handles(cluster) {
			return driver, nil
		}
	}
	return nil, fmt.Errorf("none of the enabled registration drivers %v can register the cluster: add the one that it needs to "+
		"--registration-drivers of hub-controller-manager", d.names())
}

// Named returns a driver by its name, or nil.
func (d Drivers) Named(name string) Driver {
	for _, driver := range d {
		if driver.Name() == name {
			return driver
		}
	}
	return nil
}

func (d Drivers) names() []string {
	names := make([]string, len(d))
	for i, driver := range d {
		names[i] = driver.Name()
	}
	return names
}
