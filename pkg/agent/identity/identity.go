// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity defines how an agent authenticates to a hub. Each method is a driver, with its own flags, in a folder of its own.
package identity

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
)

// RegisterDriver is one way to get an identity.
type RegisterDriver interface {
	// Names returns the names of the driver for --registration-auth. The first is the one that is shown.
	Names() []string
	// Summary describes the identity in a few words, for the help.
	Summary() string
	// AddFlags adds the driver's own flags.
	AddFlags(fs *pflag.FlagSet)
	// Validate returns all errors of these flags. Flags that only this driver needs may be missing if it is not chosen.
	Validate(chosen bool) []error
	// Rights returns the rights that the driver's identities need.
	Rights() rights.Rights
	// New returns the identity that the flags configure.
	New(agent Agent) (Identity, error)
	// Find returns the identity that is in a state, whatever the flags are, or nil if it is not this driver's.
	Find(s state.State) (Identity, error)
}

// Agent is the part of the agent that an identity uses.
type Agent struct {
	Store   *state.Store
	Connect hub.Connect
	// Random returns a number in [0, 1), for jitter.
	Random func() float64
	// Report sets a condition in the status of the ManagedCluster.
	Report func(metav1.Condition)
	// Tell records an event for an admin of the agent.
	Tell func(ctx context.Context, eventType, reason, message string)
}

// Identity is how one agent authenticates. Its persistent data is in the state.
type Identity interface {
	// Prepare writes to the state what it must have before the first request to the hub.
	Prepare(ctx context.Context) error
	// Annotations returns the annotations of a new ManagedCluster.
	Annotations(s state.State) (map[string]string, error)
	// Requested reports whether the identity has been requested; the ManagedCluster must exist before.
	Requested(s state.State) bool
	// Step takes the next step towards an identity. It returns true once the state has one, and false if it must be called again later.
	Step(ctx context.Context, by Bootstrap) (bool, error)
	// Usable returns why the identity of the state cannot be used, or nil.
	Usable(s state.State) error
	// Maintain renews the identity, authenticated by itself. It returns nil as soon as the state has a new one, and an error when the current one can no
	// longer be used, or the context has ended.
	Maintain(ctx context.Context, h *hub.Hub) error
	// User returns the user of the kubeconfig in the state, which is for processes that have the secret as files.
	User() *clientcmdapi.AuthInfo
	// Config returns the client configuration of this process for such a kubeconfig.
	Config(s state.State, kubeconfig []byte) (*rest.Config, error)
}

// Bootstrap is the access to the hub of an agent that has no identity yet.
type Bootstrap struct {
	// Kubeconfig is the bootstrap kubeconfig, and Hub has the clients with its rights.
	Kubeconfig *clientcmdapi.Config
	Hub        *hub.Hub
	// NewKey means that the hub may know a different key for this agent.
	NewKey bool
}

// Drivers are all drivers of an agent.
type Drivers []RegisterDriver

// Named returns the driver of a name, or nil.
func (d Drivers) Named(name string) RegisterDriver {
	for _, driver := range d {
		for _, known := range driver.Names() {
			if known == name {
				return driver
			}
		}
	}
	return nil
}

// Find returns the identity that is in a state.
func (d Drivers) Find(s state.State) (Identity, error) {
	for _, driver := range d {
		if found, err := driver.Find(s); found != nil || err != nil {
			return found, err
		}
	}
	return nil, fmt.Errorf("none of the registration drivers of hub-agent knows the identity in the state of cluster %s", s.ClusterName)
}
