// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/command"
)

const (
	// clocksDiffer is the assumed maximum clock skew between two machines.
	clocksDiffer = 5 * time.Minute
	// maxEnsureInterval is the maximum time until Ensure is called again: timers stop while a machine is suspended, and do not follow a clock that is set.
	maxEnsureInterval = time.Hour
	// tooFar is the maximum time by which an expiration may be later than requested.
	tooFar = 24 * time.Hour
)

// desiredSecret is a desired Secret, with derived values.
type desiredSecret struct {
	*Desired
	kubeconfig []byte
	// source is the hash of the source.
	source string
}

func newTarget(wanted *Desired) (*desiredSecret, error) {
	if wanted.Source == nil || wanted.Cluster == nil || wanted.Secret.Name == "" || wanted.Secret.Namespace == "" ||
		wanted.Account.Name == "" || wanted.Account.Namespace == "" {
		return nil, fmt.Errorf("a minted kubeconfig takes a Secret, a ServiceAccount, a source and its cluster, not %s, %s/%s and %s",
			wanted.Secret, wanted.Account.Namespace, wanted.Account.Name, wanted.Source)
	}
	// The UID comes from the cluster, and is stored in the Secret.
	if uid := wanted.Account.UID; !IsUID(uid) {
		return nil, &Failed{ReasonAccountInvalid, fmt.Sprintf("the cluster says that the ServiceAccount %s/%s has a UID of %d bytes, and a UID has "+
			"1 to %d letters, digits and hyphens: is it the API server of the cluster?", wanted.Account.Namespace, wanted.Account.Name, len(uid), maxUID)}
	}
	kubeconfig, err := wanted.Source.Minted()
	return &desiredSecret{Desired: wanted, kubeconfig: kubeconfig, source: wanted.Source.Hash()}, err
}

// maxUID is the maximum length of a UID. Those of Kubernetes have 36 characters.
const maxUID = 64

var uidPattern = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// IsUID reports whether a UID that a cluster returned has a valid form, so that it may be stored and shown.
func IsUID(uid types.UID) bool { return len(uid) <= maxUID && uidPattern.MatchString(string(uid)) }

// minted is a token with its times, by our clock and truncated to seconds.
type minted struct {
	token          string
	at, expiration time.Time
}

// data returns the data of the Secret.
func (m *minted) data(target *desiredSecret) map[string][]byte {
	return map[string][]byte{
		KubeconfigKey:       target.kubeconfig,
		TokenKey:            []byte(m.token),
		ExpirationKey:       []byte(format(m.expiration)),
		AccountNamespaceKey: []byte(target.Account.Namespace),
		AccountNameKey:      []byte(target.Account.Name),
		AccountUIDKey:       []byte(target.Account.UID),
	}
}

func (m *minted) digest(target *desiredSecret) string {
	data := m.data(target)
	parts := [][]byte{[]byte(format(m.at))}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, data[key])
	}
	return digest(parts...)
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// recorded returns the token in the Secret, and reports whether it was minted for the target and is unchanged.
func (t *desiredSecret) recorded(secret *corev1.Secret) (m minted, good bool) {
	var err1, err2 error
	m.token = string(secret.Data[TokenKey])
	m.at, err1 = time.Parse(time.RFC3339, secret.Annotations[MintedAtAnnotation])
	m.expiration, err2 = time.Parse(time.RFC3339, string(secret.Data[ExpirationKey]))
	if err1 != nil || err2 != nil || !command.IsToken(m.token) {
		return minted{}, false
	}
	for key, want := range m.data(t) {
		if !bytes.Equal(secret.Data[key], want) {
			return minted{}, false
		}
	}
	if secret.Annotations[DigestAnnotation] != m.digest(t) {
		return minted{}, false
	}
	return m, true
}

// dress sets the desired metadata of a Secret.
func (t *desiredSecret) dress(secret *corev1.Secret) {
	for key, value := range t.Labels {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, key, value)
	}
	for key, value := range t.Annotations {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
	}
	for _, owner := range t.OwnerReferences {
		same := func(other metav1.OwnerReference) bool { return other.UID == owner.UID }
		if i := slices.IndexFunc(secret.OwnerReferences, same); i >= 0 {
			secret.OwnerReferences[i] = owner
		} else {
			secret.OwnerReferences = append(secret.OwnerReferences, owner)
		}
	}
}

// have is the observed Secret.
type have struct {
	target *desiredSecret
	// secret is nil if it does not exist.
	secret *corev1.Secret
	// minted is the content of the Secret if good is true.
	minted minted
	good   bool
}

// due reports whether a token is needed.
func (h *have) due(now time.Time) bool { return !h.good || !now.Before(h.renewal()) }

// complete reports whether there is nothing to do.
func (h *have) complete(now time.Time) bool {
	if h.due(now) || h.fixed() || len(h.secret.Data) != len(h.minted.data(h.target)) {
		return false
	}
	dressed := h.secret.DeepCopy()
	h.target.dress(dressed)
	return equality.Semantic.DeepEqual(dressed.ObjectMeta, h.secret.ObjectMeta)
}

// fixed reports whether the Secret cannot be updated to the desired state.
func (h *have) fixed() bool {
	return h.secret.Immutable != nil && *h.secret.Immutable || h.secret.Type != corev1.SecretTypeOpaque
}

// renewal returns the time to renew the token: a part of the granted lifetime after it was minted.
func (h *have) renewal() time.Time {
	granted := h.minted.expiration.Sub(h.minted.at)
	part := RenewFrom + (RenewAt-RenewFrom)*spread(h.target.Secret)
	return h.minted.at.Add(time.Duration(part * float64(granted)))
}

func (h *have) state(now time.Time) Result {
	state := Result{Next: now}
	if h.good && now.Before(h.minted.expiration) {
		state.Usable, state.Expiration = true, h.minted.expiration
		if renewal := h.renewal(); renewal.After(now) {
			state.Next = renewal
		}
		if again := now.Add(maxEnsureInterval); state.Next.After(again) {
			state.Next = again
		}
	}
	return state
}

// spread returns a number in [0, 1) for each Secret. It is not random, since random numbers cluster now and then, and it is the same after a restart.
func spread(secret types.NamespacedName) float64 {
	sum := sha256.Sum256([]byte(secret.String()))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// mint requests a token, and validates the response.
func (k *Minter) mint(ctx context.Context, target *desiredSecret) (*minted, error) {
	asked := k.Lifetime
	if asked <= 0 {
		asked = DefaultLifetime
	}
	// The lifetime counts from before the request: no token is older.
	at := k.now().Truncate(time.Second)
	answer, err := target.Cluster.Token(ctx, target.Account, asked)
	of := fmt.Sprintf("of the ServiceAccount %s/%s", target.Account.Namespace, target.Account.Name)
	switch {
	case err != nil:
		return nil, &Failed{ReasonTokenNotGranted, fmt.Sprintf("the cluster has not granted a token %s: %v", of, err)}
	case answer == nil || !command.IsToken(answer.Status.Token):
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the cluster has responded to the request for a token %s, but the token cannot be "+
			"used: is it the API server of the cluster?", of)}
	}
	// The server's clock may differ. The duration that it returns does not depend on clocks, and the shorter one of the two is safe.
	expiration := answer.Status.ExpirationTimestamp.Time
	granted := expiration.Sub(at)
	switch {
	case granted <= 0:
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the token %s had expired before it was issued, at %s, and the local time is %s: "+
			"do the clocks differ?", of, format(expiration), format(at))}
	case granted > asked+tooFar:
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the token %s expires at %s, and the requested lifetime was %s: do the clocks differ?",
			of, format(expiration), asked)}
	}
	if seconds := answer.Spec.ExpirationSeconds; seconds != nil && 0 < *seconds && *seconds < math.MaxInt64/int64(time.Second) {
		granted = min(granted, time.Duration(*seconds)*time.Second)
	}
	granted = min(granted, asked).Truncate(time.Second)
	if granted < min(MinLifetime, asked) {
		return nil, &Failed{ReasonTokenTooShort, fmt.Sprintf("the cluster grants a token %s for %s only, and the minimum is %s: "+
			"check --service-account-max-token-expiration of its API server, and whether the clocks differ", of, granted, MinLifetime)}
	}
	return &minted{token: answer.Status.Token, at: at, expiration: at.Add(granted)}, nil
}
