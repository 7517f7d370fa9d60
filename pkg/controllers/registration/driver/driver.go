// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package driver has what the ways of registering a cluster, the drivers, have in common. The reconciler of
// pkg/controllers/registration/clusteracceptance calls them; it makes what every cluster needs, whatever its driver.
package driver

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// Record is the identity that a driver grants to a cluster, in a form that only the driver reads. The hub stores it where
// the cluster's agent cannot change it, before anything is granted and until all of it has been revoked: what a cluster
// says of itself may change at any time, what it was accepted with may not.
type Record string

// Driver gives clusters that register by it their identity on the hub, and takes it away. Its methods are called for
// several clusters at the same time, and may be called again for what has been done already: a process may end at any
// line, and its successor starts from the record.
type Driver interface {
	// Name is how --registration-drivers names the driver.
	Name() string
	// Handles says whether a cluster registers by this driver. Of several that do, the first counts.
	Handles(cluster *clusterv1.ManagedCluster) bool
	// Plan is the identity that a cluster is to have once it is accepted. It sends no request. An error is about what the
	// cluster says of itself, and is shown in its conditions.
	Plan(cluster *clusterv1.ManagedCluster) (Record, error)
	// Grant makes what the record says, or makes it again where it has drifted. An error is tried again later, seldom when it
	// is a Terminal one, and shown in the cluster's conditions: it must not have secrets. A Warning is no failure.
	Grant(ctx context.Context, cluster string, record Record) error
	// Revoke removes what Grant has made, or a part of it. It does not fail for what is not there.
	Revoke(ctx context.Context, cluster string, record Record) error
	// CheckInterval is how often Grant is called for a cluster without a reason, to repair what has drifted; 0 is never.
	CheckInterval() time.Duration
	// AutoApproves says whether a cluster is accepted without an admin. It is asked only with the feature gate
	// ManagedClusterAutoApproval, and only for clusters that have never been accepted.
	AutoApproves(cluster *clusterv1.ManagedCluster) bool
}

// Watcher is a Driver whose AutoApproves looks at more than the cluster. It is asked again whenever one of these objects
// changes that carries the cluster's name in the label pkg/registration.ClusterNameLabel.
type Watcher interface {
	Watches() []client.Object
}

// Explainer is a Driver that says why a cluster that it may seem to accept without an admin is left to one, or "".
type Explainer interface {
	WhyNot(cluster *clusterv1.ManagedCluster) string
}

// Exclusive is a Driver whose identities are of one cluster each. What a cluster says of itself may be another's: it gets
// no identity that another one has, and none without an admin that another one asks for.
type Exclusive interface {
	// Identity names what a record stands for, or is "" when it stands for nothing.
	Identity(record Record) string
}

// Mover is a Driver that can let in otherwise who has been accepted, when its flags have changed.
type Mover interface {
	// Move is the record that a cluster is to have instead, or the same one. It is asked before Grant, and written before that is called: so
	// it names, too, what is left to be taken away of the old one. It sends no request.
	Move(cluster string, rec Record) Record
	// Same says that two records differ in nothing but that.
	Same(a, b Record) bool
}

// Drivers are those that are enabled, in the order in which they are asked.
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
