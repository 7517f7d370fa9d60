// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

// AutoApprovalGate is the feature gate of clusters that are accepted without an admin.
const AutoApprovalGate = "ManagedClusterAutoApproval"

// Kind is a way of registering clusters that can be enabled. It is all that hub-controller-manager needs to know of it.
type Kind interface {
	// Name is how --registration-drivers names it, and that of its Driver.
	Name() string
	// AddFlags adds the flags of its own.
	AddFlags(*pflag.FlagSet)
	// Validate says what is wrong with the flags, whether it is enabled or not. Those by which clusters are accepted without an
	// admin are wrong if that is not allowed.
	Validate(autoApproval bool) []error
	// Rights are those that it adds to the hub's, all of them granted by components of artifacts/deploy.
	Rights() []kit.Right
	// New makes the driver, or says what is wrong with the options. It sends no request.
	New(context.Context, Options) (Driver, error)
}

// Options are what a driver may need of the process that it is in.
type Options struct {
	// Hub is the way to the hub's kube-apiserver, and Cached reads what the controllers watch.
	Hub    *rest.Config
	Cached client.Reader
	// CheckInterval is how often what a cluster was granted is checked; 0 is never.
	CheckInterval time.Duration
}
