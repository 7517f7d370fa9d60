// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprotection

import (
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "clusterprotection"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: append(ToProtect(),
		kit.On(v1alpha1.SchemeGroupVersion, "clusters", "list", "watch"),
		kit.On(v1alpha1.SchemeGroupVersion, "clusters/status", "patch"),
		kit.On(v1alpha1.SchemeGroupVersion, "accessrequests", "list", "watch"),
	)}
}

// ToProtect returns the permissions that Protect needs.
func ToProtect() []kit.Right {
	return []kit.Right{
		kit.On(v1alpha1.SchemeGroupVersion, "clusters", "get", "patch"),
		kit.On(v1alpha1.SchemeGroupVersion, "clusters/finalizers", "update"),
	}
}
