// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// grantOIDC gives access to those whom an OIDC provider knows.
func (r *access) grantOIDC(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target,
) (*answer, error) {
	wanted, err := oidcRights(ar.Spec.OIDC, r.hash(ar))
	if err != nil {
		return nil, err
	}
	if err := t.bring(ctx, wanted); err != nil {
		return nil, err
	}
	if err := r.trust(ctx, cluster, ar); err != nil {
		return nil, err
	}
	// A token that the request had before it asked for OIDC is of no use any more.
	if err := r.deleteSecret(ctx, ar, tokenSourceName(ar)); err != nil {
		return nil, err
	}
	kubeconfig, err := oidcKubeconfig(config, cluster, &ar.Spec.OIDC.OIDCProviderConfig)
	if err != nil {
		return nil, err
	}
	secret := r.accessSecret(ar, config, map[string][]byte{v1alpha1.SecretKeyKubeconfig: kubeconfig})
	if err := r.writeSecret(ctx, secret, ar); err != nil {
		return nil, err
	}
	return &answer{message: "access by the OIDC provider " + ar.Spec.OIDC.Name}, nil
}

// untrustFormer ends the trust in the OIDC provider of a request that asks for a token by now.
func (r *access) untrustFormer(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) error {
	if _, ok := r.provider.(OIDCTruster); !ok {
		return nil
	}
	secret, err := r.secret(ctx, types.NamespacedName{Namespace: ar.Namespace, Name: secretName(ar.Name)})
	if err != nil || !r.madeFor(ar, secret) {
		return client.IgnoreNotFound(err)
	}
	if _, _, token := lifetime(secret); token {
		return nil
	}
	return r.trust(ctx, cluster, ar)
}

// trust makes a cluster trust the OIDC providers of all its AccessRequests, of which one is given as it is now.
func (r *access) trust(ctx context.Context, cluster *v1alpha1.Cluster, now *v1alpha1.AccessRequest) error {
	truster, ok := r.provider.(OIDCTruster)
	if !ok {
		return nil
	}
	lock, _ := r.trusting.LoadOrStore(cluster.UID, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()

	list := &v1alpha1.AccessRequestList{}
	name := client.ObjectKeyFromObject(cluster).String()
	if err := r.client.List(ctx, list, client.MatchingFields{byCluster: name}); err != nil {
		return err
	}
	providers, conflict := trusted(slices.DeleteFunc(list.Items, func(ar v1alpha1.AccessRequest) bool {
		return !r.labelled(&ar) || ar.UID == now.UID || !slices.Contains(ar.Finalizers, r.accessFinalizer())
	}), now)
	if err := truster.TrustOIDC(ctx, cluster.DeepCopy(), providers); err != nil {
		return fmt.Errorf("making the cluster trust %d OIDC providers: %w", len(providers), err)
	}
	return conflict
}

// trusted are the OIDC providers of requests, the oldest first, and whether now's is not among them: a cluster can take the
// tokens of one issuer in one way only, and who came first keeps it.
func trusted(others []v1alpha1.AccessRequest, now *v1alpha1.AccessRequest) (providers []v1alpha1.OIDCProviderConfig, conflict error) {
	all := append(slices.Clone(others), *now)
	slices.SortFunc(all, func(a, b v1alpha1.AccessRequest) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	for _, ar := range all {
		if ar.Spec.OIDC == nil || !ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied() {
			continue
		}
		provider := ar.Spec.OIDC.OIDCProviderConfig.DeepCopy().Default()
		provider.RoleBindings, provider.ExtraScopes = nil, nil
		provider.UsernamePrefix, provider.GroupsPrefix = new(provider.GetUsernamePrefix()), new(provider.GetGroupsPrefix())
		if slices.ContainsFunc(providers, func(earlier v1alpha1.OIDCProviderConfig) bool { return differs(earlier, *provider) }) {
			if ar.UID == now.UID {
				conflict = reasoned{reasonOIDCConflict, errors.New(
					"the cluster trusts spec.oidc.issuer already, with other claims or prefixes, for another AccessRequest: take the same ones")}
			}
			continue
		}
		if !slices.ContainsFunc(providers, func(earlier v1alpha1.OIDCProviderConfig) bool {
			return equality.Semantic.DeepEqual(earlier, *provider)
		}) {
			providers = append(providers, *provider)
		}
	}
	return providers, conflict
}

// differs is whether two providers are of one issuer, and take its tokens in different ways.
func differs(a, b v1alpha1.OIDCProviderConfig) bool {
	return a.Issuer == b.Issuer && (*a.UsernameClaim != *b.UsernameClaim || *a.GroupsClaim != *b.GroupsClaim ||
		*a.UsernamePrefix != *b.UsernamePrefix || *a.GroupsPrefix != *b.GroupsPrefix)
}
