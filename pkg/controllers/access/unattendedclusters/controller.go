// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package unattendedclusters

import (
	eventsv1 "k8s.io/api/events/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: reporter, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(v1alpha1.SchemeGroupVersion, "clusters", "list", "watch"),
		kit.On(v1alpha1.SchemeGroupVersion, "clusters/status", "patch"),
		kit.On(v1alpha1.SchemeGroupVersion, "clusterprofiles", "list", "watch"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}}
}
