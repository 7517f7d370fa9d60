// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustermetrics measures the clusters of the hub: how many are in each state, how long registrations take, how many wait, and when
// certificates end. It follows the cache and reconciles nothing: the cost of a change and of a scrape does not depend on the number of clusters.
package clustermetrics

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// Controller returns the name, the setup and the permissions of the controller.
func Controller(drivers driver.Drivers) kit.Controller {
	return kit.Controller{Name: "clustermetrics", Rights: []kit.Right{kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch")},
		Setup: func(ctx context.Context, mgr ctrl.Manager) error {
			c := newCollector(drivers)
			synced, err := kit.Follow(ctx, mgr, &clusterv1.ManagedCluster{}, c.observe)
			if err != nil {
				return err
			}
			return kit.Expose(kit.Once(synced, c))
		}}
}
