// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workevents records an event when a ManifestWork of a user cannot be applied, and one when it can be again. It follows the cache and
// reconciles nothing: only a change of a work has a cost, and the works that exist when it starts are not changes.
package workevents

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// name is the name of the controller.
const name = "workevents"

// Controller returns the name, the setup and the permissions of the controller.
func Controller() kit.Controller {
	return kit.Controller{Name: name, Rights: []kit.Right{
		kit.On(workv1.SchemeGroupVersion, "manifestworks", "list", "watch"),
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch"),
	}, Setup: func(ctx context.Context, mgr ctrl.Manager) error {
		_, err := kit.Follow(ctx, mgr, &workv1.ManifestWork{}, newTeller(mgr.GetEventRecorder(name), clock.RealClock{}).record)
		return err
	}}
}
