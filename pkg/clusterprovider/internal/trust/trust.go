// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trust manages the OIDC issuers that clusters trust because of AccessRequests, and the names that each may assign.
package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// Issuers manages the OIDC issuers that the clusters of a provider trust because of AccessRequests.
type Issuers struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	// AnyPrefix accepts OIDC providers whose prefixes do not separate their names from others'.
	AnyPrefix bool
	// telling has a lock for each cluster whose trust is being set.
	telling sync.Map
	// fit has, by the UID of their requests, the names of OIDC providers that were accepted, until the status of the request records it.
	fit sync.Map
}

// New returns Issuers without accepted providers.
func New(own hub.Identity, provider clusterprovider.Provider, c client.Client) *Issuers {
	return &Issuers{Identity: own, provider: provider, client: c}
}

// Admit makes a cluster trust the OIDC provider of a request, if that is acceptable. It comes before the rights, because a rejected request gets
// none: they could be for names of another issuer's users.
func (r *Issuers) Admit(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, t client.Reader) error {
	if err := r.fitToTrust(ctx, ar, cluster, t); err != nil {
		return err
	}
	return r.notify(ctx, cluster, ar)
}

// Revoke ends the trust in what a request no longer requests, if its status records any. The Secret does not count: the requester can write and
// delete it.
func (r *Issuers) Revoke(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) error {
	if ar.Spec.OIDC == nil && meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		return nil
	}
	return r.notify(ctx, cluster, ar)
}

// Forget drops that a request's OIDC provider was accepted.
func (r *Issuers) Forget(uid types.UID) { r.fit.Delete(uid) }

// Again makes a cluster trust the OIDC providers of the existing AccessRequests, and no others. Only this ends the trust in the provider of
// a request that was deleted before its access was revoked, or whose trust is not in its status because the process ended before it wrote that.
func (r *Issuers) Again(ctx context.Context, cluster *v1alpha1.Cluster) error {
	return r.notify(ctx, cluster, &v1alpha1.AccessRequest{})
}

// notify makes a cluster trust the OIDC providers of all its AccessRequests, with now as the current version of one of them.
func (r *Issuers) notify(ctx context.Context, cluster *v1alpha1.Cluster, now *v1alpha1.AccessRequest) error {
	truster, ok := r.provider.(clusterprovider.OIDCTruster)
	if !ok {
		return nil
	}
	lock, _ := r.telling.LoadOrStore(cluster.UID, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()

	asked := now
	if !r.mayBeTrusted(now) {
		asked = now.DeepCopy()
		asked.Spec.OIDC = nil
	}
	list := &v1alpha1.AccessRequestList{}
	name := client.ObjectKeyFromObject(cluster).String()
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: name}); err != nil {
		return err
	}
	providers, conflict := trusted(slices.DeleteFunc(list.Items, func(ar v1alpha1.AccessRequest) bool {
		return ar.UID == now.UID || !v1alpha1.IsPrepared(&ar) || !r.mayBeTrusted(&ar)
	}), asked)
	err := truster.TrustOIDC(ctx, cluster.DeepCopy(), providers)
	if refused := (clusterprovider.RefusedIssuers)(nil); errors.As(err, &refused) {
		err = refusal(refused, now)
	} else if errors.As(err, &clusterprovider.NotYet{}) {
		err = hub.Because(hub.ReasonClusterNotReady, err)
	} else if err != nil {
		err = fmt.Errorf("making the cluster trust %d OIDC providers: %w", len(providers), err)
	}
	return cmp.Or(err, conflict)
}

// mayBeTrusted reports whether the current OIDC provider of a request was accepted, for which the request has a finalizer. A rejected request has
// one, too. The cache may not have the finalizer of one that was just accepted.
func (r *Issuers) mayBeTrusted(ar *v1alpha1.AccessRequest) bool {
	if ar.Spec.OIDC == nil {
		return false
	}
	provider := trustOf(ar)
	found, _ := r.fit.Load(ar.UID)
	return r.Begun(ar) && trustRank(ar) == 0 || found == any(names(&provider))
}

// refusal returns the error about a request's own issuer. It blocks neither other requests, nor the end of this one.
func refusal(refused clusterprovider.RefusedIssuers, ar *v1alpha1.AccessRequest) error {
	if ar.Spec.OIDC == nil || !ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied() {
		return nil
	}
	if why, ok := refused[ar.Spec.OIDC.Issuer]; ok {
		return hub.Because(hub.ReasonOIDCIssuerRefused, fmt.Errorf("spec.oidc.issuer: the cluster cannot trust %s: %w",
			ar.Spec.OIDC.Issuer, why))

	}
	return nil
}

// trusted returns the OIDC providers of requests, and why now's is not among them. Two providers must not be able to assign one name to different
// people. A provider that is trusted already stays trusted, whatever others request; of the rest, the first one counts.
func trusted(
	others []v1alpha1.AccessRequest, now *v1alpha1.AccessRequest,
) (providers []v1alpha1.OIDCProviderConfig, conflict error) {
	all := append(slices.Clone(others), *now)
	slices.SortFunc(all, func(a, b v1alpha1.AccessRequest) int {
		return cmp.Or(cmp.Compare(trustRank(&a), trustRank(&b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.UID, b.UID))
	})
	for _, ar := range all {
		if ar.Spec.OIDC == nil || !ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied() {
			continue
		}
		provider := trustOf(&ar)
		why := error(nil)
		for _, earlier := range providers {
			why = cmp.Or(why, collision(&earlier, &provider))
		}
		if ar.UID == now.UID {
			conflict = why
		}
		if why == nil && !slices.ContainsFunc(providers, func(earlier v1alpha1.OIDCProviderConfig) bool {
			return equality.Semantic.DeepEqual(earlier, provider)
		}) {
			providers = append(providers, provider)
		}
	}
	return providers, conflict
}

// collision returns why a cluster that trusts one provider cannot trust another.
func collision(earlier, later *v1alpha1.OIDCProviderConfig) error {
	switch {
	case earlier.Issuer == later.Issuer && names(earlier) != names(later):
		return hub.Because(hub.ReasonOIDCConflict, errors.New("the cluster already trusts spec.oidc.issuer "+
			"with other claims or prefixes, for another AccessRequest: use the same ones"))

	case earlier.Issuer != later.Issuer && (overlap(*earlier.UsernamePrefix, *later.UsernamePrefix) ||
		overlap(*earlier.GroupsPrefix, *later.GroupsPrefix)):
		return hub.Because(hub.ReasonOIDCConflict, errors.New("the cluster already trusts another issuer for another AccessRequest, "+
			"and users of spec.oidc.issuer could have the names of its users or groups: use another spec.oidc.name, or "+
			"another usernamePrefix and groupsPrefix"))

	}
	return nil
}

// overlap reports whether names exist that begin with both prefixes.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
