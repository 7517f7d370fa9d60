// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Additional keys of HubKubeconfigSecret for an agent with the bootstrap kubeconfigs of several hubs.
const (
	// KeyHub has the name of the bootstrap kubeconfig of the hub that the agent uses, or tries to join.
	KeyHub = "hub"
	// KeyGivenUpHubs has the hubs that were given up since the agent last worked with one, as FormatGivenUp writes them. It is missing while the
	// agent works with its hub.
	KeyGivenUpHubs = "given-up-hubs"
)

// Reasons for giving up a hub, in addition to the refusals.
const (
	// GivenUpNoAnswer: the hub did not respond.
	GivenUpNoAnswer = "NoAnswer"
	// GivenUpNotAcceptedInTime: the hub responds, and has not accepted the cluster in time.
	GivenUpNotAcceptedInTime = "NotAcceptedInTime"
	// GivenUpBootstrapKubeconfig: the bootstrap kubeconfig is missing, or cannot be used.
	GivenUpBootstrapKubeconfig = "BootstrapKubeconfigUnusable"
	// GivenUpBootstrapRefused: the hub refuses the user of the bootstrap kubeconfig.
	GivenUpBootstrapRefused = "BootstrapTokenRefused"
	// GivenUpNotListed: the bootstrap kubeconfig of the hub is not among those of the agent any more.
	GivenUpNotListed = "NotListed"
)

// MaxHubs is the maximum number of bootstrap kubeconfigs of an agent.
const MaxHubs = 10

// The time without a response after which a hub is given up, in seconds: the minimum, as in upstream, and the default.
const (
	MinHubTimeoutSeconds     = 180
	DefaultHubTimeoutSeconds = 600
)

// GivenUpHub is a hub that was given up.
type GivenUpHub struct {
	// Name is the name of its bootstrap kubeconfig.
	Name string `json:"name"`
	// Reason is one of those above, or a refusal.
	Reason string `json:"reason"`
	// Time is the time at which it was last given up, and Times is the number of times since the agent last worked with a hub.
	Time  metav1.Time `json:"time"`
	Times int         `json:"times"`
}

// FormatGivenUp formats given up hubs for KeyGivenUpHubs. It returns nil for an empty list.
func FormatGivenUp(all []GivenUpHub) []byte {
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil // texts, times and numbers can always be marshalled
	}
	return data
}

// ParseGivenUp parses the output of FormatGivenUp. It returns nothing for invalid data, which affects only the order in which hubs are tried.
func ParseGivenUp(data []byte) (all []GivenUpHub) {
	if json.Unmarshal(data, &all) != nil || len(all) > 2*MaxHubs {
		return nil
	}
	return all
}
