// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package finishedworks

import (
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "finishedworks"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(workv1.SchemeGroupVersion, "manifestworks", "list", "watch", "delete"),
	}}
}
