// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

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

// A List is what was read of a kind. Objects that were not seen are not taken for missing.
type List[T any] struct {
	Items []T
	// Seen is that all objects of the kind were read that a check needs.
	Seen bool
}

// Hub is what the checks of a hub know.
type Hub struct {
	// Now is the time of the hub, and Skew what the local clock is ahead of it, give or take SkewWithin.
	Now              time.Time
	Skew, SkewWithin time.Duration
	// Patience is how long something may wait for a person, and how old a set may be without clusters.
	Patience time.Duration

	// Expected is what artifacts/deploy has on a hub of this program's version.
	Expected []*unstructured.Unstructured
	// Rights and Policies are those of Expected that the hub has.
	Rights, Policies List[*unstructured.Unstructured]
	// Accounts are the ServiceAccounts of our components, by namespace/name.
	Accounts List[string]

	APIServices List[apiregistrationv1.APIService]
	// CRDs are names of CustomResourceDefinitions.
	CRDs List[string]
	// Paths is how the front answers for the groups and versions of our APIServices, by their names: empty is as it should be.
	Paths map[string]string

	// Leases are those of the namespace of the components, and Deployments what runs there.
	Leases      List[coordinationv1.Lease]
	Deployments List[appsv1.Deployment]
	// Version is that of this program, and Serving when the certificate of the hub ends.
	Version string
	Serving *time.Time
	// Authorities are the SHA-256 of the certificates by which that certificate was found good from here; none if it was not checked.
	Authorities []string
	Storage     Storage
	// FrontReady is what /readyz of the front has to complain of.
	FrontReady string

	Webhooks []Webhook
	Clusters List[clusterv1.ManagedCluster]
	Requests List[certificatesv1.CertificateSigningRequest]
	Sets     List[v1beta1.ManagedClusterSet]
	Bindings List[v1beta2.ManagedClusterSetBinding]
}

// Storage is what is known of where the hub keeps its objects.
type Storage struct {
	// Refused is what hub-apiserver answered to a dry run for want of room.
	Refused string
	// Size and Quota are of an etcd in bytes; 0 is not known.
	Size, Quota int64
}

// A Webhook is one that the hub asks about changes.
type Webhook struct {
	// Resource and Configuration say where it is written, and Index at which place.
	Resource, Configuration string
	Index                   int
	Name                    string
	Rules                   []admissionregistrationv1.RuleWithOperations
	// Fails is that changes are refused when it does not answer, and Narrowed that it has a selector or conditions.
	Fails, Narrowed bool
	// Namespace and Service are where it is; both are empty if it has a URL.
	Namespace, Service string
	// HasService and HasEndpoints say whether something is there. They count if Seen.
	HasService, HasEndpoints, Seen bool
}

// Check looks at all of it. What the user may not see is in Unseen already, by who read it.
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

// age is how long ago something was, by the clock of the hub.
func (h *Hub) age(then time.Time) time.Duration { return h.Now.Sub(then).Round(time.Second) }
