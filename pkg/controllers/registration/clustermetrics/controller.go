// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustermetrics measures the clusters of the hub: how many are accepted, denied, or wait, by driver. It counts what is in
// the cache whenever it is asked, and reconciles nothing.
package clustermetrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Controller is what the manager knows of it.
func Controller(drivers driver.Drivers) kit.Controller {
	return kit.Controller{Name: "clustermetrics", Rights: []kit.Right{kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch")},
		Setup: func(ctx context.Context, mgr ctrl.Manager) error {
			informer, err := mgr.GetCache().GetInformer(ctx, &clusterv1.ManagedCluster{}, cache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			clusters, ok := informer.(toolscache.SharedInformer)
			if !ok {
				return fmt.Errorf("the cache of clusters is a %T, and expected one with a store", informer)
			}
			return kit.Expose(&collector{drivers: drivers, synced: clusters.HasSynced, clusters: clusters.GetStore().List})
		}}
}

// The states of a cluster.
const (
	accepted = "accepted"
	denied   = "denied"  // it was accepted once
	waiting  = "waiting" // for its first acceptance
)

// noDriver is for clusters that none of the enabled drivers handles.
const noDriver = "none"

var description = prometheus.NewDesc("clusterhub_managed_clusters",
	"ManagedClusters by the driver that handles them, and by whether they are accepted, denied, or wait to be accepted.",
	[]string{"driver", "state"}, nil)

type collector struct {
	drivers driver.Drivers
	// synced says that all clusters are known: a part of them is told to nobody.
	synced   func() bool
	clusters func() []any
}

var _ prometheus.Collector = &collector{}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- description }

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	if !c.synced() {
		return
	}
	type kind struct{ driver, state string }
	counts := map[kind]int{}
	// What there may be is told with 0, so that alerts on it work before the first.
	for _, d := range c.drivers {
		for _, state := range []string{accepted, denied, waiting} {
			counts[kind{d.Name(), state}] = 0
		}
	}
	for _, object := range c.clusters() {
		if cluster, ok := object.(*clusterv1.ManagedCluster); ok {
			counts[kind{c.driverOf(cluster), stateOf(cluster)}]++
		}
	}
	for k, n := range counts {
		to <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), k.driver, k.state)
	}
}

func (c *collector) driverOf(cluster *clusterv1.ManagedCluster) string {
	for _, d := range c.drivers {
		if d.Handles(cluster) {
			return d.Name()
		}
	}
	return noDriver
}

func stateOf(cluster *clusterv1.ManagedCluster) string {
	switch {
	case cluster.Spec.HubAcceptsClient:
		return accepted
	case meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted) != nil:
		return denied
	}
	return waiting
}
