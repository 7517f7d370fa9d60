// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	eventsv1 "k8s.io/api/events/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "manifestworkreplicaset"

// Options are the settings of the controller that flags set.
type Options struct {
	// ChecksAgentExecutor is the feature gate NilExecutorValidating: the author of a template without an executor needs the permission to execute
	// as work.AgentExecutor. hub-controller-manager writes the works, and may itself execute as every user.
	ChecksAgentExecutor bool
}

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	works, replicaSets, placements := workv1.SchemeGroupVersion, workv1alpha1.SchemeGroupVersion, clusterv1beta1.SchemeGroupVersion
	return kit.Controller{Name: name, Setup: o.SetupWithManager, Rights: []kit.Right{
		kit.On(replicaSets, "manifestworkreplicasets", "list", "watch", "patch"),
		kit.On(replicaSets, "manifestworkreplicasets/status", "patch"),
		kit.On(replicaSets, "manifestworkreplicasets/finalizers", "update"),
		kit.On(replicaSets, "manifestworkreplicasetrevisions", "list", "watch", "create", "delete"),
		// execute-as is for templates with an executor. The controller itself checks that the author has the permission.
		kit.On(works, "manifestworks", "list", "watch", "create", "patch", "delete", executeAs),
		kit.On(placements, "placements", "list", "watch"),
		kit.On(placements, "placementdecisions", "list", "watch"),
		// The permissions of an author may come from sets.
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersets", "list", "watch"),
		kit.On(clusterv1beta2.SchemeGroupVersion, "managedclustersetbindings", "list", "watch"),
		kit.On(authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "create"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}}
}
