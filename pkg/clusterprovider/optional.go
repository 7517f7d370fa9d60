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
	// TrustOIDC makes the cluster trust exactly these providers, all that access is granted through. Their defaults and
	// prefixes are set. Those of one issuer have the same claims and prefixes, and may have different clients. It is not
	// called twice at once for one cluster.
	//
	// If some issuers cannot be trusted, it makes the cluster trust all others, and returns those as RefusedIssuers. Any
	// other error says that it is not known which issuers the cluster trusts.
	TrustOIDC(ctx context.Context, cluster *v1alpha1.Cluster, providers []v1alpha1.OIDCProviderConfig) error
}

// NotYet is an error of TrustOIDC: the cluster is on its way to what was asked for, and the Cluster says so. TrustOIDC is called
// again.
type NotYet struct{ Message string }

// Error implements error.
func (e NotYet) Error() string { return e.Message }

// RefusedIssuers are the OIDC issuers that a cluster does not trust though it should, by URL, and why. Only AccessRequests with
// these issuers fail.
type RefusedIssuers map[string]error

// Error implements error.
func (e RefusedIssuers) Error() string {
	var reasons []string
	for _, issuer := range slices.Sorted(maps.Keys(e)) {
		reasons = append(reasons, fmt.Sprintf("the OIDC issuer %s: %v", issuer, e[issuer]))
	}
	return strings.Join(reasons, "; ")
}

// Watcher is a Provider that sees by itself what becomes of its clusters.
type Watcher interface {
	// Watch runs until the context ends, and only while the provider is the one that acts. It calls changed for a Cluster that
	// Ensure has to look at. exist returns the UIDs of all Clusters of the hub: whatever the provider has of others is left over.
	Watch(ctx context.Context, changed func(types.NamespacedName), exist func(context.Context) (sets.Set[types.UID], error))
}

// Withdrawer is a Provider that can take a cluster from its Cluster, which stays and may be given it again.
type Withdrawer interface {
	// Withdrawn says why a Cluster does not have its cluster any more; empty if it has it, or has never had it. It reads
	// that anew each time, and remembers nothing: the answer counts for access that is given at this moment.
	Withdrawn(ctx context.Context, cluster *v1alpha1.Cluster) (why string, err error)
}
