// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is the hub as an agent sees it: the ways to it, the agent's cluster on it, and what the agent has to say there.
package hub

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/limits"
	clusterclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	workclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/work/v1"
)

// RequestTimeout is for one request to the hub.
const RequestTimeout = 30 * time.Second

// Rejections is how often in a row the hub has to say that it does not know the agent before it is believed.
const Rejections = 5

// ErrRejected ends a session in which the hub does not know the agent's identity, which is otherwise good.
var ErrRejected = errors.New("the hub rejects the agent's identity")

// Hub is a hub as one identity reaches it.
type Hub struct {
	Kube     kubernetes.Interface
	Clusters clusterclient.Interface
	// Works has no time limit of its own: works are watched.
	Works workclient.WorkV1Interface
	// CA are the certificates by which the hub is trusted, PEM; empty if these are the ones of the machine.
	CA []byte
}

// Connect makes a Hub of a configuration. It sends no request.
type Connect func(*rest.Config) (*Hub, error)

var _ Connect = New

// New is the hub that a configuration reaches, with the default bound of requests about works.
func New(config *rest.Config) (*Hub, error) { return Bounded(limits.Default())(config) }

// Bounded makes Hubs with a bound of the requests about works.
func Bounded(works limits.Requests) Connect {
	return func(config *rest.Config) (*Hub, error) { return connect(config, works) }
}

func connect(config *rest.Config, bound limits.Requests) (*Hub, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	clusters, err := clusterclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	watching := bound.In(config)
	watching.Timeout = 0
	works, err := workclient.NewForConfig(watching)
	if err != nil {
		return nil, err
	}
	return &Hub{Kube: kube, Clusters: clusters, Works: works, CA: config.CAData}, nil
}

// Refused says what it may mean that the hub does not let the agent do what it does.
func Refused(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the hub does not let this cluster in: an admin has denied it, or the hub is still accepting it, or its "+
			"ManagedCluster was deleted (to register it anew, restart the agent): %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the hub does not know this agent's identity: %w", err)
	}
	return err
}
