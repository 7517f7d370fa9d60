// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	eventsv1 "k8s.io/api/events/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "placementscheduler"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	placements, sets := clusterv1beta1.SchemeGroupVersion, clusterv1beta2.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1alpha1.SchemeGroupVersion, "addonplacementscores", "list", "watch"),
		kit.On(sets, "managedclustersets", "list", "watch"),
		kit.On(sets, "managedclustersetbindings", "list", "watch"),
		kit.On(placements, "placements", "list", "watch"),
		kit.On(placements, "placements/status", "patch"),
		// Setting the owner reference of an object needs delete, too.
		kit.On(placements, "placementdecisions", "list", "watch", "create", "patch", "delete"),
		kit.On(placements, "placementdecisions/status", "patch"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}}
}
