// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "edgeplacements"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	edge := edgev1alpha1.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: SetupWithManager, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersets", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersetbindings", "list", "watch"),
		kit.On(edge, "edgenodes", "list", "watch"),
		kit.On(edge, "edgeservices", "list", "watch"),
		kit.On(edge, "deploymentpolicies", "list", "watch"),
		kit.On(edge, "deploymentpatterns", "list", "watch"),
		kit.On(edge, "deploymentpolicies/status", "patch"),
		kit.On(edge, "deploymentpatterns/status", "patch"),
		kit.On(edge, "edgeplacements", "list", "watch", "create", "patch", "delete"),
		kit.On(edge, "edgeplacements/finalizers", "update"),
		// To check whether an author may use a service of another namespace.
		kit.On(authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "create"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}}
}
