// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of HubKubeconfigSecret that an agent with the bootstrap kubeconfigs of several hubs has, too.
const (
	// KeyHub has the name of the bootstrap kubeconfig whose hub the agent works with, or tries to join.
	KeyHub = "hub"
	// KeyGivenUpHubs has the hubs that were given up since the agent last worked with one, as FormatGivenUp writes them. It is missing while
	// the agent works with its hub.
	KeyGivenUpHubs = "given-up-hubs"
)

// Reasons why a hub is given up, beside the refusals.
const (
	// GivenUpNoAnswer: the hub did not answer.
	GivenUpNoAnswer = "NoAnswer"
	// GivenUpNotAcceptedInTime: the hub answers, and has not accepted the cluster in time.
	GivenUpNotAcceptedInTime = "NotAcceptedInTime"
	// GivenUpBootstrapKubeconfig: the bootstrap kubeconfig is missing, or cannot be used.
	GivenUpBootstrapKubeconfig = "BootstrapKubeconfigUnusable"
	// GivenUpBootstrapRefused: the hub refuses the user of the bootstrap kubeconfig.
	GivenUpBootstrapRefused = "BootstrapTokenRefused"
	// GivenUpNotListed: the bootstrap kubeconfig of the hub is not among those of the agent any more.
	GivenUpNotListed = "NotListed"
)

// MaxHubs is how many bootstrap kubeconfigs an agent may have.
const MaxHubs = 10

// The time without an answer after which a hub is given up, in seconds: the least, which is upstream's, and the default.
const (
	LeastHubTimeoutSeconds   = 180
	DefaultHubTimeoutSeconds = 600
)

// GivenUpHub is a hub that was given up.
type GivenUpHub struct {
	// Name is the name of its bootstrap kubeconfig.
	Name string `json:"name"`
	// Reason is one of those above, or a refusal.
	Reason string `json:"reason"`
	// Time is when it was given up last, and Times is how often since the agent last worked with a hub.
	Time  metav1.Time `json:"time"`
	Times int         `json:"times"`
}

// FormatGivenUp writes given up hubs for KeyGivenUpHubs; nothing if there are none.
func FormatGivenUp(all []GivenUpHub) []byte {
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil // texts, times and numbers can always be written
	}
	return data
}

// ParseGivenUp reads what FormatGivenUp has written. What cannot be read is nothing: it decides in which order hubs are tried, and no more.
func ParseGivenUp(data []byte) (all []GivenUpHub) {
	if json.Unmarshal(data, &all) != nil || len(all) > 2*MaxHubs {
		return nil
	}
	return all
}
