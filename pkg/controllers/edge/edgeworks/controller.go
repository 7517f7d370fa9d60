// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "edgeworks"

// Options are the settings of the controller that flags set.
type Options struct {
	// ChecksAgentExecutor is the feature gate NilExecutorValidating: the works of a policy or pattern have no executor, so its author needs the
	// permission to execute as work.AgentExecutor.
	ChecksAgentExecutor bool
}

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	edge := edgev1alpha1.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: o.SetupWithManager, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersets", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersetbindings", "list", "watch"),
		kit.On(edge, "edgenodes", "list", "watch"),
		// get is for archives, which the cache does not have.
		kit.On(edge, "edgeservices", "get", "list", "watch"),
		kit.On(edge, "deploymentpolicies", "list", "watch"),
		kit.On(edge, "deploymentpatterns", "list", "watch"),
		// get is for what must not be decided by a stale cache: whether something is gone.
		kit.On(edge, "edgeplacements", "get", "list", "watch", "patch"),
		kit.On(edge, "edgeplacements/status", "patch"),
		kit.On(edge, "edgeplacements/finalizers", "update"),
		// To check whether an author may have the agent create objects.
		kit.On(authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "create"),
		kit.On(workv1.SchemeGroupVersion, "manifestworks", "get", "list", "watch", "create", "patch", "delete"),
	}}
}
