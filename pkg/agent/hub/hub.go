// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub has the agent's clients of the hub, its ManagedCluster there, and what its tasks report to the hub.
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

// RequestTimeout bounds one request to the hub.
const RequestTimeout = 30 * time.Second

// Rejections is the number of consecutive responses that the hub does not know the agent after which the agent believes it.
const Rejections = 5

// ErrRejected ends a session in which the hub does not know the agent's identity, which is valid otherwise.
var ErrRejected = errors.New("the hub rejects the agent's identity")

// Hub has the clients of a hub for one identity.
type Hub struct {
	Kube     kubernetes.Interface
	Clusters clusterclient.Interface
	// Works has no timeout of its own, since it watches works.
	Works workclient.WorkV1Interface
	// CA are the CA certificates of the hub, PEM; empty if those of the machine are used.
	CA []byte
}

// Connect returns the Hub of a configuration. It sends no request.
type Connect func(*rest.Config) (*Hub, error)

var _ Connect = New

// New returns the Hub of a configuration, with the default limits of requests for works.
func New(config *rest.Config) (*Hub, error) { return Bounded(limits.Default())(config) }

// Bounded returns a Connect with limits of the requests for works.
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

// Refused adds a likely cause to an error if the hub rejects the agent's request.
func Refused(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the hub denies access to this cluster: an admin has denied it, or the hub is still accepting it, or its "+
			"ManagedCluster was deleted (to register it again, restart the agent): %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the hub does not know this agent's identity: %w", err)
	}
	return err
}
