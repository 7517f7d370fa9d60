// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

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

// Keys of a Secret with a minted kubeconfig, as Open Cluster Management has them.
const (
	// KubeconfigKey is that of the kubeconfig, in a source and in what is minted.
	KubeconfigKey = "kubeconfig"
	// TokenKey is that of the token. The kubeconfig refers to a file of that name beside it.
	TokenKey = "token"
	// ExpirationKey says when the token ends, in RFC 3339, by the clock of the process that asked for it.
	ExpirationKey = "expiration"
	// AccountNamespaceKey, AccountNameKey and AccountUIDKey say whose token it is.
	AccountNamespaceKey = "serviceaccount_namespace"
	AccountNameKey      = "serviceaccount_name"
	AccountUIDKey       = "serviceaccount_uid"
)

const (
	// MintedAtAnnotation says when the token was asked for, in RFC 3339. From then until its expiration is what was granted.
	MintedAtAnnotation = "operator.clusterhub.dev/minted-at"
	// DigestAnnotation tells whether others have changed what was minted.
	DigestAnnotation = "operator.clusterhub.dev/minted-digest"
)

const (
	// DefaultLifetime is what is asked for; a cluster may grant less. It is what a token is worth to a thief at most, unless its
	// ServiceAccount is deleted, and a fifth of it, six days, is how long the operator may be away without harm.
	DefaultLifetime = 30 * 24 * time.Hour
	// MinLifetime is the shortest lifetime that is taken. Kubernetes grants no shorter one.
	MinLifetime = 10 * time.Minute
	// RenewAt is the part of the lifetime that was granted after which a token is renewed at the latest.
	RenewAt = 0.8
	// RenewFrom is the part after which it is renewed at the earliest. Each Secret has its own moment between the two, so that those
	// that were minted at once are not renewed at once.
	RenewFrom = 0.7
)

// Reasons for which nothing is minted, as conditions have them.
const (
	// ReasonTokenNotGranted: the cluster has not answered a TokenRequest with a token.
	ReasonTokenNotGranted = "TokenNotGranted"
	// ReasonAccountInvalid: what it says of the ServiceAccount cannot be true.
	ReasonAccountInvalid = "ServiceAccountInvalid"
	// ReasonTokenInvalid: what it has answered cannot be a token, or its expiration cannot be true.
	ReasonTokenInvalid = "TokenInvalid"
	// ReasonTokenTooShort: it grants less than MinLifetime.
	ReasonTokenTooShort = "TokenLifetimeTooShort"
	// ReasonTooManyTokens: the Secret, or the ServiceAccount, changes so often that each time another token would be needed.
	ReasonTooManyTokens = "TooManyTokens"
)

// Failed says why a kubeconfig was not minted. Both fields can be shown: no token is in them, and of what a cluster said, one short line.
type Failed struct {
	// Reason is one of the above.
	Reason string
	// Message says what happened and what to do, in one line.
	Message string
}

// Error implements error.
func (f *Failed) Error() string { return f.Message }

// Minter is a cluster that grants tokens, such as *outer.Cluster. Its errors can be shown.
type Minter interface {
	// Token asks for a token of a ServiceAccount for the audience of the API server. If uid is not "", it is one of the
	// ServiceAccount with that UID.
	Token(ctx context.Context, account Account, lifetime time.Duration) (*authenticationv1.TokenRequest, error)
}

// Account is a ServiceAccount of the cluster that a kubeconfig is for.
type Account struct {
	Namespace, Name string
	// UID is that of the ServiceAccount as it is there now. The token of a former one of that name is worth nothing.
	UID types.UID
}

// Wanted is one Secret of the management cluster with a minted kubeconfig.
type Wanted struct {
	// Secret is where it is kept. What others have put there is replaced.
	Secret types.NamespacedName
	// Labels, Annotations and OwnerReferences are those that the Secret has to have; it keeps others.
	Labels, Annotations map[string]string
	OwnerReferences     []metav1.OwnerReference
	// Account is whose token it gets.
	Account Account
	// Source says how the cluster is reached, for the minted kubeconfig.
	Source *Source
	// Cluster grants the token. It is reached by the source.
	Cluster Minter
}

// State is what there is after Ensure, also if that has failed.
type State struct {
	// Next is when to call Ensure again, if nothing changes before. It is never zero, and never in the past.
	Next time.Time
	// Usable says that the Secret has what is wanted, with a token that has not ended. A token that could not be renewed in
	// time is usable until its end.
	Usable bool
	// Expiration is the end of the token if it is usable.
	Expiration time.Time
	// Minted says that this call has asked for a token and has written it.
	Minted bool
}

// again is the state after a failure. That a token has ended is told then.
func (s State) again(next time.Time) State {
	if s.Next = next; s.Usable && s.Expiration.Before(next) {
		s.Next = s.Expiration
	}
	return s
}

// Keeper keeps Secrets with minted kubeconfigs. It may be used by several goroutines, for different Secrets.
type Keeper struct {
	// Client is that of the management cluster: get, create, update and delete of Secrets. It may read from a cache.
	Client client.Client
	// Live reads from the management cluster itself, before a token is asked for: a cache may not have what was written a moment
	// ago. If it is nil, Client is taken, which must then not have a cache.
	Live client.Reader
	// Clock is the real one if it is nil.
	Clock clock.PassiveClock
	// Lifetime is what is asked for, DefaultLifetime if it is 0.
	Lifetime time.Duration

	lock  sync.Mutex
	paces map[types.NamespacedName]*pace
}

// Ensure brings the Secret to what is wanted. It asks for a token only if there is none for this account, server, CA, tls-server-name
// and proxy-url, if it is time to renew it, or if others have changed it. It writes nothing that is there, and reads nothing from
// the cluster of the ServiceAccount.
//
// A *Failed says that no token is to be had; then a call before State.Next fails in the same way without asking the cluster, unless
// the source has changed. Other errors are those of the management cluster. With either, return no error to a work queue whose
// delays begin at milliseconds, but come back at State.Next.
func (k *Keeper) Ensure(ctx context.Context, wanted Wanted) (State, error) {
	target, err := newTarget(&wanted)
	if err != nil {
		return State{Next: k.now().Add(lastRetry)}, err
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
		// The token is as it was minted, and what is around it is not.
		if err := k.write(ctx, have, target, &have.minted); err != nil {
			state.Next = now.Add(firstRetry)
			return state, err
		}
		return state, nil
	}

	pace := k.pace(wanted.Secret, now)
	if next, err := pace.mayAsk(now, target.source); err != nil {
		return state.again(next), err
	}
	minted, err := k.mint(ctx, target)
	if err == nil {
		err = k.write(ctx, have, target, minted)
	}
	now = k.now()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // the caller's end is no failure
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

func (k *Keeper) now() time.Time {
	if k.Clock == nil {
		return time.Now()
	}
	return k.Clock.Now()
}

// read is what there is in the Secret, as a cluster or a cache has it.
func (k *Keeper) read(ctx context.Context, from client.Reader, target *target) (*have, error) {
	secret := &corev1.Secret{}
	err := from.Get(ctx, target.Secret, secret)
	if apierrors.IsNotFound(err) {
		return &have{target: target}, nil
	}
	if err != nil {
		return &have{target: target}, fmt.Errorf("reading the Secret %s: %w", target.Secret, err)
	}
	found := &have{target: target, secret: secret}
	if found.minted, found.good = target.recorded(secret); found.good {
		// A clock that was ahead when it was minted would keep it for too long.
		found.good = !found.minted.at.After(k.now().Add(clocksDiffer))
	}
	if secret.DeletionTimestamp != nil {
		return found, fmt.Errorf("the Secret %s is being deleted: it is made anew when it is gone", target.Secret)
	}
	return found, nil
}

// write makes or changes the Secret. It fails if the Secret is not any more what was read.
func (k *Keeper) write(ctx context.Context, have *have, target *target, minted *minted) error {
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
		// What cannot be changed any more is made anew.
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

// pace is that of a Secret. The others that have not asked for long are forgotten.
func (k *Keeper) pace(secret types.NamespacedName, now time.Time) *pace {
	k.lock.Lock()
	defer k.lock.Unlock()
	for other, p := range k.paces {
		if other != secret && now.Sub(p.last) > forgetAfter {
			delete(k.paces, other)
		}
	}
	if k.paces == nil {
		k.paces = map[types.NamespacedName]*pace{}
	}
	if k.paces[secret] == nil {
		k.paces[secret] = &pace{}
	}
	k.paces[secret].last = now
	return k.paces[secret]
}

// Forget drops what is remembered of a Secret that is not wanted any more. It deletes nothing.
func (k *Keeper) Forget(secret types.NamespacedName) {
	k.lock.Lock()
	defer k.lock.Unlock()
	delete(k.paces, secret)
}
