// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/kit"
)

// AutoApprovalGate is the feature gate for accepting clusters without an admin.
const AutoApprovalGate = "ManagedClusterAutoApproval"

// Factory is a way of registering clusters that can be enabled. It has all that hub-controller-manager needs for it.
type Factory interface {
	// Name is its name in --registration-drivers, and that of its Driver.
	Name() string
	// AddFlags adds its own flags.
	AddFlags(*pflag.FlagSet)
	// Validate returns the errors of the flags, whether it is enabled or not. Without autoApproval, flags for accepting clusters without an admin
	// are errors.
	Validate(autoApproval bool) []error
	// Rights are the permissions that it adds to the hub's, all of them granted by components of artifacts/deploy.
	Rights() []kit.Right
	// New returns the driver, or an error if the options are invalid. It sends no request.
	New(context.Context, Options) (Driver, error)
}

// Options are the inputs that a driver may need from its process.
type Options struct {
	// Hub is the configuration for the hub's kube-apiserver, and Cached reads from the caches of the controllers.
	Hub    *rest.Config
	Cached client.Reader
	// CheckInterval is the interval of checks of what a cluster was granted; 0 is never.
	CheckInterval time.Duration
}
