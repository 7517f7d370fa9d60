// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// EndpointAnnotation is the digest of the cluster's endpoint in a kubeconfig.
const EndpointAnnotation = "clusters.clusterhub.dev/endpoint"

// Token is the token of a request.
type Token struct {
	Value            string
	Created, Expires time.Time
	// Until is the time until which tokens of the request are valid, by the provider's own clock.
	Until time.Time
}

// Token writes the Secret of a request with a token.
func (r *Answers) Token(ctx context.Context, ar *v1alpha1.AccessRequest, config *rest.Config, token Token) error {
	kubeconfig, err := tokenKubeconfig(config, r.Name, token.Value)
	if err != nil {
		return err
	}
	secret := r.answerSecret(ar, config, map[string][]byte{
		v1alpha1.SecretKeyKubeconfig:          kubeconfig,
		v1alpha1.SecretKeyCreationTimestamp:   []byte(strconv.FormatInt(token.Created.Unix(), 10)),
		v1alpha1.SecretKeyExpirationTimestamp: []byte(strconv.FormatInt(token.Expires.Unix(), 10)),
	})
	secret.Annotations[r.TokensUntilAnnotation()] = token.Until.UTC().Format(time.RFC3339)
	return r.write(ctx, secret, ar)
}

// OIDC writes the Secret of a request with an OIDC provider. A previous token is invalid.
func (r *Answers) OIDC(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config) error {
	if r.Sources(ctx) {
		if err := r.deleteOne(ctx, ar, hub.TokenSourceName(ar)); err != nil {
			return err
		}
	}
	kubeconfig, err := oidcKubeconfig(config, cluster, &ar.Spec.OIDC.OIDCProviderConfig)
	if err != nil {
		return err
	}
	return r.write(ctx, r.answerSecret(ar, config, map[string][]byte{v1alpha1.SecretKeyKubeconfig: kubeconfig}), ar)
}

// Source writes the source with which hub-apiserver issues short-lived tokens of a ServiceAccount: the token of another ServiceAccount that may only
// request tokens of the ServiceAccounts of AccessRequests.
func (r *Answers) Source(ctx context.Context, ar *v1alpha1.AccessRequest, config *rest.Config, account, token string) error {
	kubeconfig, err := tokenKubeconfig(config, v1alpha1.TokenMinterServiceAccount, token)
	if err != nil {
		return err
	}
	place := hub.TokenSourceName(ar)
	return r.write(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name, Labels: r.OwnLabels()},
		Type:       v1alpha1.TokenSourceSecretType,
		Data: map[string][]byte{
			v1alpha1.TokenSourceKubeconfigKey:              kubeconfig,
			v1alpha1.TokenSourceServiceAccountNamespaceKey: []byte(v1alpha1.TokenMinterNamespace),
			v1alpha1.TokenSourceServiceAccountNameKey:      []byte(account),
			v1alpha1.TokenSourceAccessRequestKey:           []byte(client.ObjectKeyFromObject(ar).String()),
		},
	}, ar)
}

// answerSecret returns the Secret of a request.
func (r *Answers) answerSecret(ar *v1alpha1.AccessRequest, config *rest.Config, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ar.Namespace, Name: hub.SecretName(ar.Name), Labels: r.OwnLabels(),
			Annotations: map[string]string{EndpointAnnotation: EndpointDigest(config)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessRequest", Name: ar.Name, UID: ar.UID, Controller: new(true),
			}},
		},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}
