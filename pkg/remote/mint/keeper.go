// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of a Secret with a minted kubeconfig. Open Cluster Management uses the same.
const (
	// KubeconfigKey is the key of the kubeconfig, in a source and in a minted Secret.
	KubeconfigKey = "kubeconfig"
	// TokenKey is the key of the token. The kubeconfig refers to a file of that name beside it.
	TokenKey = "token"
	// ExpirationKey is the key of the time when the token expires, in RFC 3339, by the clock of the process that requested it.
	ExpirationKey = "expiration"
	// AccountNamespaceKey, AccountNameKey and AccountUIDKey are the keys of the ServiceAccount of the token.
	AccountNamespaceKey = "serviceaccount_namespace"
	AccountNameKey      = "serviceaccount_name"
	AccountUIDKey       = "serviceaccount_uid"
)

const (
	// MintedAtAnnotation has the time when the token was requested, in RFC 3339. The granted lifetime starts then.
	MintedAtAnnotation = "operator.clusterhub.dev/minted-at"
	// DigestAnnotation has a digest, to detect whether others changed what was minted.
	DigestAnnotation = "operator.clusterhub.dev/minted-digest"
)

const (
	// DefaultLifetime is the default of the requested lifetime; a cluster may grant less. It limits the use of a stolen token, unless the
	// ServiceAccount is deleted, and a fifth of it, six days, is the time that the operator may be down without harm.
	DefaultLifetime = 30 * 24 * time.Hour
	// MinLifetime is the shortest accepted lifetime. Kubernetes grants no shorter one.
	MinLifetime = 10 * time.Minute
	// RenewAt is the part of the granted lifetime after which a token is renewed at the latest.
	RenewAt = 0.8
	// RenewFrom is the part after which it is renewed at the earliest. Each Secret has its own moment between the two, so that tokens that were
	// minted at the same time are not renewed at the same time.
	RenewFrom = 0.7
)

// Reasons why no token is minted, for conditions.
const (
	// ReasonTokenNotGranted: the cluster did not respond to a TokenRequest with a token.
	ReasonTokenNotGranted = "TokenNotGranted"
	// ReasonAccountInvalid: what the cluster returned for the ServiceAccount is invalid.
	ReasonAccountInvalid = "ServiceAccountInvalid"
	// ReasonTokenInvalid: what it returned is not a token, or its expiration is implausible.
	ReasonTokenInvalid = "TokenInvalid"
	// ReasonTokenTooShort: the granted lifetime is less than MinLifetime.
	ReasonTokenTooShort = "TokenLifetimeTooShort"
	// ReasonTooManyTokens: the Secret, or the ServiceAccount, changes so often that each time another token would be needed.
	ReasonTooManyTokens = "TooManyTokens"
)

// Failed reports why a kubeconfig was not minted. Both fields can be shown: they contain no token, and at most one short line from the cluster.
type Failed struct {
	// Reason is one of the reasons above.
	Reason string
	// Message describes what happened and what to do, in one line.
	Message string
}

// Error implements error.
func (f *Failed) Error() string { return f.Message }

// TokenSource is a cluster that grants tokens, such as *reach.Connection. Its errors can be shown.
type TokenSource interface {
	// Token requests a token of a ServiceAccount for the audience of the API server. If uid is not "", the token is for the ServiceAccount with that
	// UID.
	Token(ctx context.Context, account Account, lifetime time.Duration) (*authenticationv1.TokenRequest, error)
}

// Account is a ServiceAccount of the cluster that a kubeconfig is for.
type Account struct {
	Namespace, Name string
	// UID is the UID of the current ServiceAccount. The token of a deleted one with the same name is invalid.
	UID types.UID
}

// Desired is a desired Secret of the management cluster with a minted kubeconfig.
type Desired struct {
	// Secret is the name of the Secret. Data that others put into it is replaced.
	Secret types.NamespacedName
	// Labels, Annotations and OwnerReferences are set on the Secret, which retains others.
	Labels, Annotations map[string]string
	OwnerReferences     []metav1.OwnerReference
	// Account is the ServiceAccount of the token.
	Account Account
	// Source has the address of the cluster for the minted kubeconfig.
	Source *Source
	// Cluster grants the token. It is reached with the source.
	Cluster TokenSource
}

// Result is the state after Ensure, also if Ensure failed.
type Result struct {
	// Next is when to call Ensure again, if nothing changes before. It is never zero, and never in the past.
	Next time.Time
	// Usable reports that the Secret has the desired content, with a token that has not expired. A token that could not be renewed in time is usable
	// until it expires.
	Usable bool
	// Expiration is the end of the token if it is usable.
	Expiration time.Time
	// Minted reports that this call requested a token and wrote it.
	Minted bool
}

// again returns the state after a failure. If the token expires before the retry, the retry is at that time.
func (s Result) again(next time.Time) Result {
	s.Next = next
	if s.Usable && s.Expiration.Before(next) {
		s.Next = s.Expiration
	}
	return s
}

// Minter reconciles Secrets with minted kubeconfigs. It may be used by several goroutines, for different Secrets.
type Minter struct {
	// Client is a client of the management cluster: get, create, update and delete of Secrets. It may read from a cache.
	Client client.Client
	// Live reads from the API server of the management cluster before a token is requested: a cache may not have what was just written. The default
	// is Client, which must not have a cache then.
	Live client.Reader
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// Lifetime is the requested lifetime. The default is DefaultLifetime.
	Lifetime time.Duration

	lock  sync.Mutex
	paces map[types.NamespacedName]*requestState
}

// Ensure reconciles the Secret. It requests a token only if the Secret has none for this account, server, CA, tls-server-name and proxy-url, if the
// token must be renewed, or if others changed the Secret. It writes nothing that is as desired, and reads nothing from the cluster of the
// ServiceAccount.
//
// A *Failed reports that no token can be minted; a call before State.Next fails in the same way without a request to the cluster, unless the source
// has changed. Other errors come from the management cluster. With either, return no error to a work queue whose delays start at milliseconds, but
// requeue at State.Next.
func (k *Minter) Ensure(ctx context.Context, wanted Desired) (Result, error) {
	target, err := newTarget(&wanted)
	if err != nil {
		return Result{Next: k.now().Add(lastRetry)}, err
	}
	have, err := k.read(ctx, k.Client, target)
	if err == nil && k.Live != nil && !have.complete(k.now()) {
		have, err = k.read(ctx, k.Live, target)
	}
	now := k.now()
	state := have.state(now)
	switch {
	case err != nil:
		state.Next = now.Add(firstRetry)
		return state, err
	case have.complete(now):
		return state, nil
	case !have.due(now):
		// The token is as it was minted, but other parts of the Secret are not.
		if err := k.write(ctx, have, target, &have.minted); err != nil {
			state.Next = now.Add(firstRetry)
			return state, err
		}
		return state, nil
	}

	pace := k.pace(wanted.Secret, now)
	if next, err := pace.allowRequest(now, target.source); err != nil {
		return state.again(next), err
	}
	minted, err := k.mint(ctx, target)
	if err == nil {
		err = k.write(ctx, have, target, minted)
	}
	now = k.now()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // a canceled caller is not a failure
		state.Next = now.Add(firstRetry)
		return state, ctx.Err()
	}
	if err != nil {
		return have.state(now).again(pace.failed(now, target.source, err, spread(wanted.Secret))), err
	}
	pace.succeeded()
	have.minted, have.good = *minted, true
	state = have.state(now)
	state.Minted = true
	return state, nil
}

func (k *Minter) now() time.Time {
	if k.Clock == nil {
		return time.Now()
	}
	return k.Clock.Now()
}

// read reads the Secret from the API server or a cache.
func (k *Minter) read(ctx context.Context, from client.Reader, target *desiredSecret) (*have, error) {
	secret := &corev1.Secret{}
	err := from.Get(ctx, target.Secret, secret)
	if apierrors.IsNotFound(err) {
		return &have{target: target}, nil
	}
	if err != nil {
		return &have{target: target}, fmt.Errorf("reading the Secret %s: %w", target.Secret, err)
	}
	found := &have{target: target, secret: secret}
	found.minted, found.good = target.recorded(secret)
	if found.good {
		// If the clock was ahead when the token was minted, the token would be retained too long.
		found.good = !found.minted.at.After(k.now().Add(clocksDiffer))
	}
	if secret.DeletionTimestamp != nil {
		return found, fmt.Errorf("the Secret %s is being deleted: it is created again after the deletion", target.Secret)
	}
	return found, nil
}

// write creates or updates the Secret. It fails if the Secret changed after it was read.
func (k *Minter) write(ctx context.Context, have *have, target *desiredSecret, minted *minted) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: target.Secret.Namespace, Name: target.Secret.Name}}
	if have.secret != nil && !have.fixed() {
		secret = have.secret.DeepCopy()
	}
	target.dress(secret)
	secret.Type = corev1.SecretTypeOpaque
	secret.Data = minted.data(target)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, MintedAtAnnotation, format(minted.at))
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, DigestAnnotation, minted.digest(target))
	var err error
	switch {
	case have.secret == nil:
		err = k.Client.Create(ctx, secret)
	case have.fixed():
		// An immutable Secret is recreated.
		if err = k.Client.Delete(ctx, have.secret, client.Preconditions{UID: &have.secret.UID, ResourceVersion: &have.secret.ResourceVersion}); err == nil {
			err = k.Client.Create(ctx, secret)
		}
	default:
		err = k.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("writing the Secret %s: %w", target.Secret, err)
	}
	return nil
}

// pace returns the pace of a Secret. It forgets Secrets without recent requests.
func (k *Minter) pace(secret types.NamespacedName, now time.Time) *requestState {
	k.lock.Lock()
	defer k.lock.Unlock()
	for other, p := range k.paces {
		if other != secret && now.Sub(p.last) > forgetAfter {
			delete(k.paces, other)
		}
	}
	if k.paces == nil {
		k.paces = map[types.NamespacedName]*requestState{}
	}
	if k.paces[secret] == nil {
		k.paces[secret] = &requestState{}
	}
	k.paces[secret].last = now
	return k.paces[secret]
}

// Forget drops the state of a Secret that is no longer desired. It deletes nothing.
func (k *Minter) Forget(secret types.NamespacedName) {
	k.lock.Lock()
	defer k.lock.Unlock()
	delete(k.paces, secret)
}
