// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"errors"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
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
	// RenewAt and RenewFrom are parts of the lifetime that was granted: it is renewed at the first at the latest. Each Secret has
	// its own moment between the two, so that those that were minted at once are not renewed at once.
	RenewAt, RenewFrom = 0.8, 0.7
)

// Reasons for which nothing is minted, as conditions have them.
const (
	// ReasonTokenNotGranted: the cluster has not answered a TokenRequest with a token.
	ReasonTokenNotGranted = "TokenNotGranted"
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
	return State{}, errors.New("not implemented")
}

// Forget drops what is remembered of a Secret that is not wanted any more. It deletes nothing.
func (k *Keeper) Forget(secret types.NamespacedName) {
	k.lock.Lock()
	defer k.lock.Unlock()
	delete(k.paces, secret)
}
