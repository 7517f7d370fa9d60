// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trust keeps the OIDC issuers that clusters trust because of AccessRequests, and the names that each may give.
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

// Issuers are the OIDC issuers that the clusters of a provider trust because of AccessRequests.
type Issuers struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	// AnyPrefix trusts OIDC providers whose prefixes do not keep their names apart from others'.
	AnyPrefix bool
	// telling has a lock for each cluster whose trust is being set.
	telling sync.Map
	// fit are, by the UID of their requests, the names that OIDC providers give which were found fit to be trusted, until the
	// status of the request says so.
	fit sync.Map
}

// New has nothing found fit yet.
func New(own hub.Identity, provider clusterprovider.Provider, c client.Client) *Issuers {
	return &Issuers{Identity: own, provider: provider, client: c}
}

// Admit makes a cluster trust the OIDC provider of a request, if that is fit. It comes before the rights, because a request
// that is refused gets none: they could be for names that another's users have.
func (r *Issuers) Admit(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, t client.Reader) error {
	if err := r.fitToTrust(ctx, ar, cluster, t); err != nil {
		return err
	}
	return r.tell(ctx, cluster, ar)
}

// End ends the trust in what a request does not ask for any more, if its status says that there may be any. The Secret does
// not count: the requester can write and remove it.
func (r *Issuers) End(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) error {
	if ar.Spec.OIDC == nil && meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		return nil
	}
	return r.tell(ctx, cluster, ar)
}

// Forget is told of a request whose OIDC provider is not known to be fit any more.
func (r *Issuers) Forget(uid types.UID) { r.fit.Delete(uid) }

// Again makes a cluster trust the OIDC providers of the AccessRequests that there are, and no others. Only here trust ends
// in that of a request that is gone without its access having been taken back, or whose trust is not in its status, because
// the provider ended before it had written that.
func (r *Issuers) Again(ctx context.Context, cluster *v1alpha1.Cluster) error {
	return r.tell(ctx, cluster, &v1alpha1.AccessRequest{})
}

// tell makes a cluster trust the OIDC providers of all its AccessRequests, of which one is given as it is now.
func (r *Issuers) tell(ctx context.Context, cluster *v1alpha1.Cluster, now *v1alpha1.AccessRequest) error {
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

// mayBeTrusted is whether the OIDC provider of a request has been found fit as it is now, for which the request is held. One that
// was refused is held like any other. The cache may not have the finalizer of one that has just been found fit.
func (r *Issuers) mayBeTrusted(ar *v1alpha1.AccessRequest) bool {
	if ar.Spec.OIDC == nil {
		return false
	}
	provider := trustOf(ar)
	found, _ := r.fit.Load(ar.UID)
	return r.Begun(ar) && trustRank(ar) == 0 || found == any(names(&provider))
}

// refusal is that of a request's own issuer. It is not in the way of other requests, nor of the end of one's own.
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

// trusted are the OIDC providers of requests, and why now's is not among them. Two providers must not be able to give one
// name to different people. A provider that is trusted already stays so, whatever others ask for by now; of the rest, the
// first one counts.
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

// collision is why a cluster that trusts one provider cannot trust another.
func collision(earlier, later *v1alpha1.OIDCProviderConfig) error {
	switch {
	case earlier.Issuer == later.Issuer && names(earlier) != names(later):
		return hub.Because(hub.ReasonOIDCConflict, errors.New("the cluster trusts spec.oidc.issuer already, "+
			"with other claims or prefixes, for another AccessRequest: take the same ones"))

	case earlier.Issuer != later.Issuer && (overlap(*earlier.UsernamePrefix, *later.UsernamePrefix) ||
		overlap(*earlier.GroupsPrefix, *later.GroupsPrefix)):
		return hub.Because(hub.ReasonOIDCConflict, errors.New("the cluster trusts another issuer already, for another AccessRequest, "+
			"and users of spec.oidc.issuer could have the names of its users or groups: take another spec.oidc.name, or "+
			"another usernamePrefix and groupsPrefix"))

	}
	return nil
}

// overlap is whether there are names that begin with both prefixes.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
