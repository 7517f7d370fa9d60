// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// name is that of the controller.
const name = "clustersetstatus"

// Controller is what the manager knows of it.
func Controller() kit.Controller {
	sets := clusterv1beta2.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		// By get it sees the members of all sets.
		kit.On(sets, "managedclustersets", "get", "list", "watch"),
		kit.On(sets, "managedclustersets/status", "patch"),
		kit.On(viewv1alpha1.SchemeGroupVersion, "clustersetmembers", "list", "watch"),
	}}
}
