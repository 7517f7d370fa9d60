// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

// grantOIDC gives access to those whom an OIDC provider knows.
func (r *access) grantOIDC(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target.Target,
) (*answer, error) {
	wanted, err := rights.Of(ar, r.Hash(ar))
	if err != nil {
		return nil, err
	}
	keep := wanted.Objects
	if trustRank(ar) > 0 {
		keep = nil // their subjects have names of an issuer that is about to be trusted no more
	}
	have, err := t.Cleanup(ctx, keep)
	if err != nil {
		return nil, err
	}
	if err := r.fitToTrust(ctx, ar, cluster, t); err != nil {
		return nil, err
	}
	// Before the rights, because whoever is refused gets none: they could be for names that another's users have.
	if err := r.trust(ctx, cluster, ar); err != nil {
		return nil, err
	}
	if err := t.Make(ctx, wanted, have); err != nil {
		return nil, err
	}
	// A token that the request had before it asked for OIDC is of no use any more.
	if r.tokenSources(ctx) {
		if err := r.deleteSecret(ctx, ar, hub.TokenSourceName(ar)); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := oidcKubeconfig(config, cluster, &ar.Spec.OIDC.OIDCProviderConfig)
	if err != nil {
		return nil, err
	}
	secret := r.accessSecret(ar, config, map[string][]byte{v1alpha1.SecretKeyKubeconfig: kubeconfig})
	if err := r.writeSecret(ctx, secret, ar); err != nil {
		return nil, err
	}
	roles := r.roles.Look(ctx, t, cluster, wanted, target.JustNow)
	return &answer{message: "access by the OIDC provider " + ar.Spec.OIDC.Name, roles: roles}, nil
}

// untrustFormer ends the trust in the OIDC provider of a request that asks for a token by now. The status says whether there may be
// one: whoever asks can write the Secret, and remove it.
func (r *access) untrustFormer(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) error {
	r.fit.Delete(ar.UID)
	if meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		return nil
	}
	return r.trust(ctx, cluster, ar)
}

// trustAgain makes a cluster trust the OIDC providers of the AccessRequests that there are, and no others. Nobody else ends the trust
// in that of a request which is gone though its access was not taken back, or which is not known to be trusted, because the
// provider ended before it had said so.
func (r *access) trustAgain(ctx context.Context, cluster *v1alpha1.Cluster) error {
	return r.trust(ctx, cluster, &v1alpha1.AccessRequest{})
}

// trust makes a cluster trust the OIDC providers of all its AccessRequests, of which one is given as it is now.
func (r *access) trust(ctx context.Context, cluster *v1alpha1.Cluster, now *v1alpha1.AccessRequest) error {
	truster, ok := r.provider.(clusterprovider.OIDCTruster)
	if !ok {
		return nil
	}
	lock, _ := r.trusting.LoadOrStore(cluster.UID, &sync.Mutex{})
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
func (r *access) mayBeTrusted(ar *v1alpha1.AccessRequest) bool {
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

// trusted are the OIDC providers of requests, and why now's is not among them. Two providers must not be able to give one name
// to different people. Who is trusted already stays so, whatever others ask for by now; of the rest, who came first.
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

// trustOf is what of a request a cluster has to know to trust its OIDC provider.
func trustOf(ar *v1alpha1.AccessRequest) v1alpha1.OIDCProviderConfig {
	provider := ar.Spec.OIDC.OIDCProviderConfig.DeepCopy().Default()
	provider.RoleBindings, provider.ExtraScopes = nil, nil
	provider.UsernamePrefix, provider.GroupsPrefix = new(provider.GetUsernamePrefix()), new(provider.GetGroupsPrefix())
	return *provider
}

// originOf is what says in a cluster for which request something was made, and how the names in it are given.
func originOf(own hub.Identity, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) map[string]string {
	origin := own.Origin(ar, cluster)
	if ar.Spec.OIDC != nil {
		provider := trustOf(ar)
		origin[own.NamesAnnotation()] = names(&provider)
	}
	return origin
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

// names says how a provider gives names to those whom it knows. What differs reads differently: two providers are compared by it.
func names(p *v1alpha1.OIDCProviderConfig) string {
	return fmt.Sprintf("tokens of %s are trusted: their claim %s with the prefix %q names the user, %s with the prefix %q the groups",
		word(p.Issuer), word(*p.UsernameClaim), *p.UsernamePrefix, word(*p.GroupsClaim), *p.GroupsPrefix)
}

// word is a text as one word, which most issuers and names of claims are as they are.
func word(text string) string {
	if strings.ContainsAny(text, ` "`) {
		return strconv.Quote(text)
	}
	return text
}

// trustRank is 0 for a request whose OIDC provider the cluster trusts as it is now.
func trustRank(ar *v1alpha1.AccessRequest) int {
	if ar.Spec.OIDC == nil {
		return 1
	}
	condition, provider := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted), trustOf(ar)
	if condition != nil && condition.Message == names(&provider) {
		return 0
	}
	return 1
}

// rememberTrust says on a request what the cluster trusts because of it.
func rememberTrust(ar *v1alpha1.AccessRequest) {
	if ar.Spec.OIDC == nil {
		return
	}
	provider := trustOf(ar)
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionOIDCTrusted, Status: metav1.ConditionTrue, Reason: hub.ReasonGranted, Message: names(&provider),
	})
}

// forgetTrust ends what a request was trusted for and does not ask for any more: others may have got it meanwhile. Unless access has
// been given for what it asks for now, the cluster may trust it still. Then that is what the status says, until it does not.
func forgetTrust(ar *v1alpha1.AccessRequest, given bool) {
	if trustRank(ar) == 0 {
		return
	}
	if given || meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted)
		return
	}
	hub.SetCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
		Type: clusterprovider.ConditionOIDCTrusted, Status: metav1.ConditionFalse, Reason: hub.ReasonNotAskedFor,
		Message: "the request does not ask any more for the OIDC provider that the cluster may trust because of it",
	})
}
