// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

const (
	// tokenLifetime is what is asked for, unless the request ends before; a cluster may give less.
	tokenLifetime = 30 * 24 * time.Hour
	// minTokenLifetime is the least that an API server gives.
	minTokenLifetime = 10 * time.Minute
	// clockSkew is by how much clocks may differ before a token is taken for one that outlives its request, or is renewed once more.
	clockSkew = time.Minute
	// A token is renewed when this part of its lifetime is over: 80 %, less up to 5 % by which the renewals of tokens that
	// were made together are spread out.
	renewAfter, renewSpread = 0.80, 0.05
	// endpointAnnotation is the digest of what a kubeconfig says of the cluster.
	endpointAnnotation = "clusters.clusterhub.dev/endpoint"
)

// answer is what a request is given.
type answer struct {
	// message for people.
	message string
	// renewal is when the access has to be renewed; zero if never.
	renewal time.Time
	// roles are what is known of those that the access refers to.
	roles target.SeenRoles
}

// endOf is when a request is deleted by its ttl; false if it has none.
func endOf(ar *v1alpha1.AccessRequest) (time.Time, bool) {
	if ar.Spec.TTL == nil {
		return time.Time{}, false
	}
	return ar.CreationTimestamp.Add(ar.Spec.TTL.Duration), true
}

// lifetimeFor is for how long a token of a request is asked for: not beyond its end, so that a token is of no use after that
// even if nobody is there to take the access back.
func lifetimeFor(ar *v1alpha1.AccessRequest, now time.Time) time.Duration {
	if end, ends := endOf(ar); ends {
		return min(tokenLifetime, max(minTokenLifetime, end.Sub(now).Truncate(time.Second)))
	}
	return tokenLifetime
}

// outlives is whether tokens that are valid until then outlive their request by now, such as after the ttl was made shorter.
func outlives(ar *v1alpha1.AccessRequest, until, now time.Time) bool {
	end, ends := endOf(ar)
	return ends && until.After(now.Add(max(end.Sub(now), minTokenLifetime)+clockSkew))
}

// endOfTokens is until when tokens were asked for, by our own clock, as an object says by an annotation. Those of earlier versions
// do not say so: then it is otherwise.
func endOfTokens(own hub.Identity, object client.Object, otherwise time.Time) time.Time {
	until, err := time.Parse(time.RFC3339, object.GetAnnotations()[own.TokensUntilAnnotation()])
	if err != nil {
		return otherwise
	}
	return until
}

// lifetime is that of the token in a Secret.
func lifetime(secret *corev1.Secret) (created, expires time.Time, ok bool) {
	created, ok1 := unixSeconds(secret.Data[v1alpha1.SecretKeyCreationTimestamp])
	expires, ok2 := unixSeconds(secret.Data[v1alpha1.SecretKeyExpirationTimestamp])
	return created, expires, ok1 && ok2
}

func unixSeconds(data []byte) (time.Time, bool) {
	seconds, err := strconv.ParseInt(string(data), 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// renewalOf is when a token has to be renewed; zero if it is valid until the request ends. It follows from the request, so that
// a restart changes nothing.
func renewalOf(ar *v1alpha1.AccessRequest, created, expires time.Time) time.Time {
	if end, ends := endOf(ar); ends && !expires.Before(end.Add(-clockSkew)) {
		return time.Time{}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(ar.UID)) // never fails
	part := renewAfter - renewSpread*float64(h.Sum32())/(1<<32)
	return created.Add(time.Duration(part * float64(expires.Sub(created))))
}

// grantToken gives access by a token of a ServiceAccount.
func (r *access) grantToken(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target.Target,
) (*answer, error) {
	name := r.Hash(ar)
	wanted, err := rights.Of(ar, name)
	if err != nil {
		return nil, err
	}
	if err := r.endOldTokens(ctx, ar, t, name); err != nil {
		return nil, err
	}
	if err := t.Bring(ctx, wanted); err != nil {
		return nil, err
	}
	created := time.Now()
	lifetime := lifetimeFor(ar, created)
	until, err := r.recordTokens(ctx, t, name, created.Add(lifetime))
	if err != nil {
		return nil, fmt.Errorf("recording until when tokens are valid: %w", err)
	}
	token, err := t.Token(ctx, name, lifetime)
	if err != nil {
		return nil, fmt.Errorf("asking for a token: %w", err)
	}
	kubeconfig, err := tokenKubeconfig(config, r.Name, token.Status.Token)
	if err != nil {
		return nil, err
	}
	if err := r.keepTokenSource(ctx, ar, config, t, name); err != nil {
		return nil, fmt.Errorf("the source of short-lived tokens: %w", err)
	}
	r.issuers.Forget(ar.UID)
	if err := r.issuers.End(ctx, ar, cluster); err != nil {
		return nil, err
	}
	expires := token.Status.ExpirationTimestamp.Time
	secret := r.accessSecret(ar, config, map[string][]byte{
		v1alpha1.SecretKeyKubeconfig:          kubeconfig,
		v1alpha1.SecretKeyCreationTimestamp:   []byte(strconv.FormatInt(created.Unix(), 10)),
		v1alpha1.SecretKeyExpirationTimestamp: []byte(strconv.FormatInt(expires.Unix(), 10)),
	})
	secret.Annotations[r.TokensUntilAnnotation()] = until.UTC().Format(time.RFC3339)
	if err := r.writeSecret(ctx, secret, ar); err != nil {
		return nil, err
	}
	given := &answer{renewal: renewalOf(ar, created, expires)}
	given.message = "access by a token, which is renewed before it expires at " + expires.UTC().Format(time.RFC3339)
	if given.renewal.IsZero() {
		given.message = "access by a token, which expires with the request, at " + expires.UTC().Format(time.RFC3339)
	}
	given.roles = r.roles.Look(ctx, t, cluster, wanted, target.JustNow)
	return given, nil
}

// endOldTokens ends tokens of a request that outlive it by now, with all that were made for the same ServiceAccount: a token
// cannot be called back, but it ends with its ServiceAccount, which is made again. The ServiceAccount says until when they are
// valid, because who asks for access can write the Secret, and remove it.
func (r *access) endOldTokens(ctx context.Context, ar *v1alpha1.AccessRequest, t *target.Target, name string) error {
	if _, ends := endOf(ar); !ends {
		return nil
	}
	account := rights.ServiceAccount(name)
	if err := t.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil || !t.Manages(account) {
		return client.IgnoreNotFound(err)
	}
	secret, err := r.secret(ctx, hub.AnswerName(ar))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	expires := time.Time{}
	if err == nil && r.MadeFor(ar, secret) {
		_, expires, _ = lifetime(secret)
	}
	if !outlives(ar, endOfTokens(r.Identity, account, expires), time.Now()) {
		return nil
	}
	return client.IgnoreNotFound(t.Delete(ctx, account, client.Preconditions{UID: &account.UID}))
}

// recordTokens records on a ServiceAccount until when its tokens are valid, of which one is about to be asked for, and returns
// what it says then. It never becomes less: tokens that were renewed are still valid.
func (r *access) recordTokens(ctx context.Context, t *target.Target, name string, until time.Time) (time.Time, error) {
	account := rights.ServiceAccount(name)
	if err := t.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil {
		return time.Time{}, err
	}
	if recorded := endOfTokens(r.Identity, account, time.Time{}); recorded.After(until) {
		return recorded, nil
	}
	return until, hub.Patch(ctx, t, account, func() {
		metav1.SetMetaDataAnnotation(&account.ObjectMeta, r.TokensUntilAnnotation(), until.UTC().Format(time.RFC3339))
	})
}

// accessSecret is the Secret that answers a request.
func (r *access) accessSecret(ar *v1alpha1.AccessRequest, config *rest.Config, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ar.Namespace, Name: hub.SecretName(ar.Name), Labels: r.OwnLabels(),
			Annotations: map[string]string{endpointAnnotation: endpointDigest(config)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "AccessRequest", Name: ar.Name, UID: ar.UID, Controller: new(true),
			}},
		},
		Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// keepTokenSource keeps what hub-apiserver makes short-lived tokens with: the token of a ServiceAccount that may do nothing
// but ask for tokens of the ServiceAccounts of AccessRequests.
func (r *access) keepTokenSource(
	ctx context.Context, ar *v1alpha1.AccessRequest, config *rest.Config, t *target.Target, name string,
) error {
	if !r.tokenSources(ctx) {
		ctrl.LoggerFrom(ctx).V(4).Info("The hub has no namespace for token sources", "namespace", v1alpha1.TokenSourceNamespace)
		return nil
	}
	token, err := r.minters.Token(ctx, endpointDigest(config), t, tokenLifetime)
	if err != nil {
		return err
	}
	kubeconfig, err := tokenKubeconfig(config, v1alpha1.TokenMinterServiceAccount, token.Status.Token)
	if err != nil {
		return err
	}
	place := hub.TokenSourceName(ar)
	return r.writeSecret(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name, Labels: r.OwnLabels()},
		Type:       v1alpha1.TokenSourceSecretType,
		Data: map[string][]byte{
			v1alpha1.TokenSourceKubeconfigKey:              kubeconfig,
			v1alpha1.TokenSourceServiceAccountNamespaceKey: []byte(v1alpha1.TokenMinterNamespace),
			v1alpha1.TokenSourceServiceAccountNameKey:      []byte(name),
			v1alpha1.TokenSourceAccessRequestKey:           []byte(client.ObjectKeyFromObject(ar).String()),
		},
	}, ar)
}
