// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// Token requests a token of a ServiceAccount.
func (t *Target) Token(ctx context.Context, name string, lifetime time.Duration) (*authenticationv1.TokenRequest, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(lifetime / time.Second)),
	}}
	return request, t.SubResource("token").Create(ctx, rights.ServiceAccount(name), request)
}

// Minters manages the ServiceAccounts of clusters that request short-lived tokens.
type Minters struct {
	// made has the time when the minter of a cluster was last applied, by the place of the cluster.
	made sync.Map
}

// Token returns a token of the ServiceAccount that requests short-lived tokens. All requests of a cluster share the ServiceAccount, so it is not
// applied each time.
func (m *Minters) Token(ctx context.Context, place string, t *Target, lifetime time.Duration) (*authenticationv1.TokenRequest, error) {
	minter := &Target{Client: t.Client, Owner: apply.Owner{
		Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.TokenMinterServiceAccount}}}
	seen, _ := m.made.Load(place)
	if at, ok := seen.(time.Time); ok && time.Since(at) < clusterprovider.ResyncInterval {
		if token, err := minter.Token(ctx, v1alpha1.TokenMinterServiceAccount, lifetime); !apierrors.IsNotFound(err) {
			return token, err
		}
	}
	meta := rights.ServiceAccount(v1alpha1.TokenMinterServiceAccount).ObjectMeta
	err := minter.ApplyRights(ctx, &rights.Rights{Namespaces: []string{meta.Namespace}, Objects: []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: rights.RoleKind, Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
		},
	}}, nil)
	if err != nil {
		return nil, err
	}
	m.made.Store(place, time.Now())
	token, err := minter.Token(ctx, meta.Name, lifetime)
	if err != nil {
		return nil, fmt.Errorf("requesting a token: %w", err)
	}
	return token, nil
}

// RecordTokens records on a ServiceAccount until when its tokens are valid, before a new one is requested, and returns the recorded time. It never
// decreases: renewed tokens are still valid.
func (t *Target) RecordTokens(ctx context.Context, own hub.Identity, name string, until time.Time) (time.Time, error) {
	account := rights.ServiceAccount(name)
	if err := t.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return time.Time{}, err
	}
	if recorded := own.TokensExpire(account, time.Time{}); recorded.After(until) {
		return recorded, nil
	}
	return until, hub.Patch(ctx, t, account, func() {
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, own.TokensUntilAnnotation(), until.UTC().Format(time.RFC3339))
	})
}
