// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprovider is the contract between a cluster provider and what runs it: what is written for each kind of provider.
// What every provider does is in the package run below. The conformance suite in test/clusterprovider tries whether a provider
// keeps what users rely on.
package clusterprovider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// ResyncInterval is how often a provider is asked about a cluster that is ready and does not change. A request that has its
// access is looked at after this time, or up to twice as long. Secrets are not watched: one that was deleted is made again
// then, or at once if the request is annotated with openmcp.cloud/operation=reconcile.
const ResyncInterval = 5 * time.Minute

// Provider is what differs from one cluster provider to another. Its methods are called concurrently. Ensure
// and Remove are not called at once for one cluster.
type Provider interface {
	// Profiles are what the provider offers now.
	Profiles(ctx context.Context) ([]Profile, error)
	// Ensure brings a cluster to what its object says, and returns how far it is. It does not wait: it is called again until
	// the cluster is ready, when the object changes, and every ResyncInterval. It does not change the object.
	Ensure(ctx context.Context, cluster *v1alpha1.Cluster, profile Profile) (State, error)
	// Remove removes the cluster and all that belongs to it, and returns true once it is gone. It is called again until then.
	Remove(ctx context.Context, cluster *v1alpha1.Cluster, profile Profile) (gone bool, err error)
	// Connect is how the provider reaches a cluster that is ready, as its admin.
	Connect(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error)
}

// Profile is a kind of cluster that a provider offers.
type Profile struct {
	// Config names the provider's configuration that the profile is made from.
	Config string
	// Versions of Kubernetes that a Cluster can ask for. Empty: any.
	Versions []v1alpha1.SupportedK8sVersion
}

// State is how far a cluster is.
type State struct {
	// Ready is whether the cluster can be used. Until then, Conditions or Info should say what is missing.
	Ready bool
	// Version of Kubernetes that the cluster has, if it is known.
	Version string
	// Info is shown by `kubectl get clusters -o wide`.
	Info string
	// Endpoints are the addresses of the cluster, as far as they are known.
	Endpoints v1alpha1.Endpoints
	// ProviderStatus is an object of the provider's own for the status, or nil.
	ProviderStatus any
	// Conditions are added to those that every cluster has. Their observedGeneration and lastTransitionTime are set.
	Conditions []metav1.Condition
	// Withdrawn is whether the Cluster may not have its cluster any more, as a Withdrawer says. Access to it is taken back. Release,
	// if there is something to release, is called once that is done, and lets others have the cluster.
	Withdrawn bool
	// Former is the UID of a Cluster that had the cluster and is gone without having given it back, as when its finalizer
	// was removed by force. The access that was given for it is taken back before Release lets this Cluster have the
	// cluster.
	Former  types.UID
	Release func(context.Context) error
	// RetryAfter is when the provider wants to be asked again. 0: after a while, depending on Ready.
	RetryAfter time.Duration
}
