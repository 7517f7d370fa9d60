// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// name is the name of the controller.
const name = "clusteravailability"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch", "patch"),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters/status", "patch"),
		kit.On(coordinationv1.SchemeGroupVersion, "leases", "list", "watch"),
		kit.On(coordinationv1.SchemeGroupVersion, "leases", "get").Named(registration.LeaseName),
		// Events about clusters, which are in no namespace.
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch").In("default"),
	}}
}
