// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor checks a whole hub, or a managed cluster with its agent, and returns a report with the findings. It is pure, like package diagnosis,
// which has what findings consist of.
package doctor

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

// A List has the objects of a kind that were read. Objects that were not read are not considered missing.
type List[T any] struct {
	Items []T
	// Seen reports whether all objects that a check needs were read.
	Seen bool
}

// Hub has the facts for the checks of a hub.
type Hub struct {
	// Now is the time of the hub. Skew is the time by which the local clock is ahead of it, with a precision of SkewWithin.
	Now              time.Time
	Skew, SkewWithin time.Duration
	// Patience is the time for which something may wait for a person, and for which a set may have no clusters.
	Patience time.Duration

	// Expected are the objects of artifacts/deploy for a hub of this program's version.
	Expected []*unstructured.Unstructured
	// Rights and Policies are the objects of Expected that the hub has.
	Rights, Policies List[*unstructured.Unstructured]
	// Accounts are the ServiceAccounts of our components, by namespace/name.
	Accounts List[string]

	APIServices List[apiregistrationv1.APIService]
	// CRDs are names of CustomResourceDefinitions.
	CRDs List[string]
	// Paths has the errors of the front for the groups and versions of our APIServices, by their names. An empty text is no error.
	Paths map[string]string

	// Leases are the leases of the namespace of the components, and Deployments its Deployments.
	Leases      List[coordinationv1.Lease]
	Deployments List[appsv1.Deployment]
	// Version is the version of this program, and Serving when the certificate of the hub expires.
	Version string
	Serving *time.Time
	// Authorities are the SHA-256 hashes of the certificates by which that certificate was verified. It is empty if it was not verified.
	Authorities []string
	Storage     Storage
	// FrontReady lists the failed checks of /readyz of the front.
	FrontReady string

	Webhooks []Webhook
	Clusters List[clusterv1.ManagedCluster]
	Requests List[certificatesv1.CertificateSigningRequest]
	Sets     List[v1beta1.ManagedClusterSet]
	Bindings List[v1beta2.ManagedClusterSetBinding]
}

// Storage is the state of the hub's storage.
type Storage struct {
	// Refused is the error with which hub-apiserver rejected a dry run because its storage is full.
	Refused string
	// Size and Quota are those of an etcd in bytes, or 0 if not known.
	Size, Quota int64
}

// A Webhook is a webhook that the hub calls for changes.
type Webhook struct {
	// Resource and Configuration identify the configuration, and Index the entry in it.
	Resource, Configuration string
	Index                   int
	Name                    string
	Rules                   []admissionregistrationv1.RuleWithOperations
	// Fails reports whether changes are rejected if it is not available, and Narrowed whether it has a selector or conditions.
	Fails, Narrowed bool
	// Namespace and Service identify its Service. Both are empty if it has a URL.
	Namespace, Service string
	// HasService and HasEndpoints report whether these exist. They are only valid if Seen is true.
	HasService, HasEndpoints, Seen bool
}

// Check runs all checks. The reader has already added to Unseen what the user may not see.
func (h *Hub) Check() *Report {
	return reportOf([]check{
		{"APIServices", h.apiServices},
		{"certificate authorities", h.authorities},
		{"CustomResourceDefinitions of our groups", h.customResources},
		{"rights of the components", h.rights},
		{"admission policies", h.policies},
		{"leaders", h.leaders},
		{"clocks", h.clocks},
		{"versions", h.versions},
		{"storage", h.storage},
		{"readiness and certificate of the front", h.front},
		{"webhooks", h.webhooks},
		{"clusters", h.clusters},
		{"versions of agents", h.agents},
		{"certificate requests", h.requests},
		{"sets", h.sets},
		{"bindings", h.bindings},
	})
}

// age returns how long ago a time was, by the clock of the hub.
func (h *Hub) age(then time.Time) time.Duration { return h.Now.Sub(then).Round(time.Second) }
