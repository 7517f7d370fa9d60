// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "clusterscheduler"

// Controller returns the name, the setup and the permissions of the controller. The configuration is nil without files.
func Controller(live *LiveConfig) kit.Controller {
	access := v1alpha1.SchemeGroupVersion
	setup := func(_ context.Context, mgr ctrl.Manager) error { return SetupWithManager(mgr, live) }
	return kit.Controller{Name: name, Setup: setup, Rights: []kit.Right{
		kit.On(access, "clusterrequests", "list", "watch", "patch"),
		kit.On(access, "clusterrequests/status", "patch"),
		kit.On(access, "clusterrequests/finalizers", "update"),
		kit.On(access, "clusters", "get", "list", "watch", "create", "patch", "delete"),
		kit.On(access, "clusters/finalizers", "update"),
		kit.On(access, "clusterprofiles", "list", "watch"),
		// The policy uses the namespace of a request.
		kit.On(corev1.SchemeGroupVersion, "namespaces", "get"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}}
}
