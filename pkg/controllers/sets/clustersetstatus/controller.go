// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "clustersetstatus"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	sets := clusterv1beta2.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		// get makes the members of all sets visible to it.
		kit.On(sets, "managedclustersets", "get", "list", "watch"),
		kit.On(sets, "managedclustersets/status", "patch"),
		kit.On(viewv1alpha1.SchemeGroupVersion, "clustersetmembers", "list", "watch"),
	}}
}
