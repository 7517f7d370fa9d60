// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// OIDCTruster is a Provider whose clusters can trust OIDC issuers.
type OIDCTruster interface {
	// TrustOIDC makes the cluster trust exactly these providers, all that access is granted through. Their defaults and prefixes are set. Those of
	// one issuer have the same claims and prefixes, and may have different clients. It is not called concurrently for one cluster.
	//
	// If some issuers cannot be trusted, it makes the cluster trust all others, and returns those as RefusedIssuers. Any other error means that it is
	// unknown which issuers the cluster trusts.
	TrustOIDC(ctx context.Context, cluster *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error
}

// NotYet is an error of TrustOIDC: the change of the cluster is in progress, and the Cluster reports it. TrustOIDC is called again.
type NotYet struct{ Message string }

// Error implements error.
func (e NotYet) Error() string { return e.Message }

// RefusedIssuers maps the URLs of OIDC issuers that a cluster cannot trust to the reasons. Only AccessRequests with these issuers fail.
type RefusedIssuers map[string]error

// Error implements error.
func (e RefusedIssuers) Error() string {
	var reasons []string
	for _, issuer := range slices.Sorted(maps.Keys(e)) {
		reasons = append(reasons, fmt.Sprintf("the OIDC issuer %s: %v", issuer, e[issuer]))
	}
	return strings.Join(reasons, "; ")
}

// Watcher is a Provider that observes changes of its clusters itself.
type Watcher interface {
	// Watch runs until the context ends, and only while the provider is the leader. It calls changed for a Cluster that needs a call of Ensure. exist
	// returns the UIDs of all Clusters of the hub: anything that the provider has of others is a leftover.
	Watch(ctx context.Context, changed func(types.NamespacedName), exist func(context.Context) (sets.Set[types.UID], error))
}

// Withdrawer is a Provider that can withdraw a cluster from its Cluster, which is not deleted and may get it again.
type Withdrawer interface {
	// Withdrawn returns why a Cluster no longer has its cluster, or "" if it has it, or has never had it. It reads that each time, and
	// caches nothing: the result is for access that is granted at this moment.
	Withdrawn(ctx context.Context, cluster *v1alpha1.Cluster) (why string, err error)
}
