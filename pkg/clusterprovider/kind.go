// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// Kind is a kind of provider, of which several can run under different names.
type Kind struct {
	// Name is the name of the command, and Short its description.
	Name, Short string
	// AddFlags adds flags of this kind. It may be nil. Settings that a deployment by openMCP needs belong in objects on the hub instead.
	AddFlags func(*pflag.FlagSet)
	// New returns the provider.
	New func(context.Context, Options) (Provider, error)
}

// Options are the options of every provider.
type Options struct {
	// ProviderName is the name of this provider on the hub. Several providers of one binary differ in it.
	ProviderName string
	// Environment is where the provider runs. It is the first part of the names of its profiles.
	Environment string
	// Namespace has the provider's own objects on the hub, such as its configuration.
	Namespace string
	// Hub is the client configuration of the hub.
	Hub *rest.Config
}
