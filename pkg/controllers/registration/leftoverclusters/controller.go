// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leftoverclusters

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// name is the name of the controller.
const name = "leftoverclusters"

// Options are the flags of the controller.
type Options struct {
	// TTL is the time for which a cluster that is not accepted is kept; 0 is forever.
	TTL time.Duration
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.TTL, "leftover-ttl", o.TTL,
		"The time after which a ManagedCluster that is not accepted and has no lease is deleted. 0 disables the deletion.")
}

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	setup := func(_ context.Context, mgr ctrl.Manager) error { return SetupWithManager(mgr, o.TTL) }
	return kit.Controller{Name: name, Setup: setup, Rights: []kit.Right{
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "list", "watch"),
		kit.On(clusterv1.SchemeGroupVersion, "managedclusters", "delete").By("leftovers"),
		kit.On(coordinationv1.SchemeGroupVersion, "leases", "get").Named(registration.LeaseName),
	}}
}
