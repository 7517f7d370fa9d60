// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprovider is the contract between a cluster provider and what runs it: the part that is implemented for each kind of provider. The
// common part of all providers is in the package run below. The conformance suite in test/clusterprovider tests whether a provider guarantees what
// users rely on.
package clusterprovider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// ResyncInterval is the interval between calls of Ensure for a ready cluster that does not change. A request with access is reconciled after this
// time, or up to twice as long. Secrets are not watched: a deleted one is recreated then, or at once if the request is annotated with
// openmcp.cloud/operation=reconcile.
const ResyncInterval = 5 * time.Minute

// Provider is the part of a cluster provider that differs between kinds. Its methods are called concurrently. Ensure and Remove are not called
// concurrently for one cluster.
type Provider interface {
	// Profiles returns what the provider currently offers.
	Profiles(ctx context.Context) ([]Profile, error)
	// Ensure reconciles a cluster with its object, and returns its state. It does not wait: it is called again until the cluster is ready, when the
	// object changes, and every ResyncInterval. It does not change the object.
	Ensure(ctx context.Context, cluster *v1alpha1.Cluster, profile Profile) (State, error)
	// Remove deletes the cluster and everything that belongs to it, and returns true once it is gone. It is called again until then.
	Remove(ctx context.Context, cluster *v1alpha1.Cluster, profile Profile) (gone bool, err error)
	// Connect returns the admin's configuration of a cluster that is ready.
	Connect(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error)
}

// Profile is a kind of cluster that a provider offers.
type Profile struct {
	// Config is the name of the provider's configuration from which the profile is created.
	Config string
	// Versions of Kubernetes that a Cluster can request. Empty means any.
	Versions []v1alpha1.SupportedK8sVersion
}

// State is the state of a cluster.
type State struct {
	// Ready reports whether the cluster can be used. Until then, Conditions or Info should describe what is missing.
	Ready bool
	// Version of Kubernetes of the cluster, if known.
	Version string
	// Info is shown by `kubectl get clusters -o wide`.
	Info string
	// Endpoints are the known addresses of the cluster.
	Endpoints v1alpha1.Endpoints
	// ProviderStatus is an object of the provider's own for the status, or nil.
	ProviderStatus any
	// Conditions are added to those that every cluster has. Their observedGeneration and lastTransitionTime are set by the caller.
	Conditions []metav1.Condition
	// Withdrawn reports that the Cluster may no longer have its cluster, as a Withdrawer does. Access to it is revoked. Release, if not nil, is
	// called after that, and releases the cluster to others.
	Withdrawn bool
	// Former is the UID of a Cluster that had the cluster and is gone without having released it, as when its finalizer was removed by force. The
	// access that was granted for it is revoked before Release assigns the cluster to this Cluster.
	Former  types.UID
	Release func(context.Context) error
	// RetryAfter is the time until the next call. 0 means after a while, depending on Ready.
	RetryAfter time.Duration
}
