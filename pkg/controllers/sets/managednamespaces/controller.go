// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managednamespaces

import (
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "managednamespaces"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters/status", "patch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersets", "list", "watch"),
	}}
}
