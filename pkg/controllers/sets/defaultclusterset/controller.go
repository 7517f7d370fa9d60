// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package defaultclusterset

import (
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "defaultclusterset"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	sets := clusterv1beta2.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(sets, "managedclustersets", "list", "watch", "create"),
		kit.On(sets, "managedclustersets", "patch").Named(cluster.DefaultSet, cluster.GlobalSet),
	}}
}
