// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity is how an agent proves to a hub who it is. Each way is a driver, with its own flags, in a folder of its own.
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

// Driver is one way to get an identity.
type Driver interface {
	// Names are how --registration-auth may name the driver. The first is the one that is shown.
	Names() []string
	// Summary says in a few words what the identity is, for the help.
	Summary() string
	// AddFlags adds the driver's own flags.
	AddFlags(fs *pflag.FlagSet)
	// Validate returns every error of them. What another driver does without may be missing unless this one is chosen.
	Validate(chosen bool) []error
	// Rights are what the driver's identities need.
	Rights() rights.Rights
	// New returns the identity that the flags say.
	New(agent Agent) (Identity, error)
	// Find returns the identity that is in a state, whatever the flags, or nil if it is not this driver's.
	Find(s state.State) (Identity, error)
}

// Agent is what an identity has of its agent.
type Agent struct {
	Store   *state.Store
	Connect hub.Connect
	// Random is in [0, 1), for delays that spread.
	Random func() float64
	// Report puts a condition into the status of the cluster.
	Report func(metav1.Condition)
	// Tell says something that an admin of the agent should know.
	Tell func(ctx context.Context, eventType, reason, message string)
}

// Identity is how one agent proves who it is. All that it remembers is in the state.
type Identity interface {
	// Prepare writes what has to be in the state before the hub hears of the cluster.
	Prepare(ctx context.Context) error
	// Annotations are what the hub is told when the cluster is made.
	Annotations(s state.State) (map[string]string, error)
	// Asked says whether the identity has been asked for; the cluster has to be on the hub before.
	Asked(s state.State) bool
	// Step takes the next step towards an identity. It returns true once there is one in the state, and false when it has to be
	// called again later.
	Step(ctx context.Context, by Bootstrap) (bool, error)
	// Usable says why the identity of the state is none, or nil.
	Usable(s state.State) error
	// Keep renews the identity with itself. It returns nil as soon as there is another in the state, and an error when the one
	// that there is can be used no longer, or the context has ended.
	Keep(ctx context.Context, h *hub.Hub) error
	// User is the user of the kubeconfig in the state, which is for processes that have the secret as files.
	User() *clientcmdapi.AuthInfo
	// Config is how this process comes to the hub by a kubeconfig of that kind.
	Config(s state.State, kubeconfig []byte) (*rest.Config, error)
}

// Bootstrap is the hub for an agent that has no identity yet.
type Bootstrap struct {
	// Kubeconfig is the bootstrap kubeconfig, and Hub the hub with its rights.
	Kubeconfig *clientcmdapi.Config
	Hub        *hub.Hub
	// NewKey says that the hub may know another key as this agent's.
	NewKey bool
}

// Drivers are those that there are.
type Drivers []Driver

// Named returns the driver of a name, or nil.
func (d Drivers) Named(name string) Driver {
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
