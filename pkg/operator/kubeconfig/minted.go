// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

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
	// clocksDiffer is by how much those of two machines may.
	clocksDiffer = 5 * time.Minute
	// lookAgain bounds when Ensure is called again: timers stand still while a machine is suspended, and do not
	// follow a clock that is set.
	lookAgain = time.Hour
	// tooFar is by how much an expiration may be later than what was asked for.
	tooFar = 24 * time.Hour
)

// target is what is wanted, with what follows from it.
type target struct {
	*Wanted
	kubeconfig []byte
	// source is its hash.
	source string
}

func newTarget(wanted *Wanted) (*target, error) {
	if wanted.Source == nil || wanted.Cluster == nil || wanted.Secret.Name == "" || wanted.Secret.Namespace == "" ||
		wanted.Account.Name == "" || wanted.Account.Namespace == "" {
		return nil, fmt.Errorf("a minted kubeconfig takes a Secret, a ServiceAccount, a source and its cluster, not %s, %s/%s and %s",
			wanted.Secret, wanted.Account.Namespace, wanted.Account.Name, wanted.Source)
	}
	// The cluster says it, and it comes into the Secret.
	if uid := wanted.Account.UID; !IsUID(uid) {
		return nil, &Failed{ReasonAccountInvalid, fmt.Sprintf("the cluster says that the ServiceAccount %s/%s has a UID of %d bytes, and a UID has "+
			"1 to %d letters, digits and hyphens: is it the API server of the cluster?", wanted.Account.Namespace, wanted.Account.Name, len(uid), maxUID)}
	}
	kubeconfig, err := wanted.Source.Minted()
	return &target{Wanted: wanted, kubeconfig: kubeconfig, source: wanted.Source.Hash()}, err
}

// maxUID is how long a UID may be. Those of Kubernetes have 36 characters.
const maxUID = 64

var looksLikeUID = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// IsUID says whether what a cluster calls a UID can be one, so that it may be kept and shown.
func IsUID(uid types.UID) bool { return len(uid) <= maxUID && looksLikeUID.MatchString(string(uid)) }

// minted is a token with its times, by our clock and to the second.
type minted struct {
	token          string
	at, expiration time.Time
}

// data is all that the Secret has.
func (m *minted) data(target *target) map[string][]byte {
	return map[string][]byte{
		KubeconfigKey:       target.kubeconfig,
		TokenKey:            []byte(m.token),
		ExpirationKey:       []byte(format(m.expiration)),
		AccountNamespaceKey: []byte(target.Account.Namespace),
		AccountNameKey:      []byte(target.Account.Name),
		AccountUIDKey:       []byte(target.Account.UID),
	}
}

func (m *minted) digest(target *target) string {
	data := m.data(target)
	parts := [][]byte{[]byte(format(m.at))}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		parts = append(parts, data[key])
	}
	return digest(parts...)
}

func format(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// recorded is what was minted for the target and is still in the Secret as it was.
func (t *target) recorded(secret *corev1.Secret) (m minted, good bool) {
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

// dress gives a Secret the metadata that is wanted.
func (t *target) dress(secret *corev1.Secret) {
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

// have is what there is.
type have struct {
	target *target
	// secret is nil if there is none.
	secret *corev1.Secret
	// minted is in the Secret if it is good.
	minted minted
	good   bool
}

// due says that a token is needed.
func (h *have) due(now time.Time) bool { return !h.good || !now.Before(h.renewal()) }

// complete says that there is nothing to do.
func (h *have) complete(now time.Time) bool {
	if h.due(now) || h.fixed() || len(h.secret.Data) != len(h.minted.data(h.target)) {
		return false
	}
	dressed := h.secret.DeepCopy()
	h.target.dress(dressed)
	return equality.Semantic.DeepEqual(dressed.ObjectMeta, h.secret.ObjectMeta)
}

// fixed says that the Secret cannot be changed to what it should be.
func (h *have) fixed() bool {
	return h.secret.Immutable != nil && *h.secret.Immutable || h.secret.Type != corev1.SecretTypeOpaque
}

// renewal is when the token is renewed: a part of what was granted after it was minted.
func (h *have) renewal() time.Time {
	granted := h.minted.expiration.Sub(h.minted.at)
	part := RenewFrom + (RenewAt-RenewFrom)*spread(h.target.Secret)
	return h.minted.at.Add(time.Duration(part * float64(granted)))
}

func (h *have) state(now time.Time) State {
	state := State{Next: now}
	if h.good && now.Before(h.minted.expiration) {
		state.Usable, state.Expiration = true, h.minted.expiration
		if renewal := h.renewal(); renewal.After(now) {
			state.Next = renewal
		}
		if again := now.Add(lookAgain); state.Next.After(again) {
			state.Next = again
		}
	}
	return state
}

// spread is a number from 0 to 1, without the 1, for each Secret: not by chance, which has bursts now and then, and the same after a restart.
func spread(secret types.NamespacedName) float64 {
	sum := sha256.Sum256([]byte(secret.String()))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// mint asks for a token, and believes nothing of the answer that cannot be true.
func (k *Keeper) mint(ctx context.Context, target *target) (*minted, error) {
	asked := k.Lifetime
	if asked <= 0 {
		asked = DefaultLifetime
	}
	// The lifetime counts from before the question: no token is older.
	at := k.now().Truncate(time.Second)
	answer, err := target.Cluster.Token(ctx, target.Account, asked)
	of := fmt.Sprintf("of the ServiceAccount %s/%s", target.Account.Namespace, target.Account.Name)
	switch {
	case err != nil:
		return nil, &Failed{ReasonTokenNotGranted, fmt.Sprintf("the cluster has not granted a token %s: %v", of, err)}
	case answer == nil || !command.IsToken(answer.Status.Token):
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the cluster has answered the request for a token %s, but with none that can be "+
			"used: is it the API server of the cluster?", of)}
	}
	// The server's clock may differ. What it says of the duration does not depend on clocks, and the shorter one of the two is safe.
	expiration := answer.Status.ExpirationTimestamp.Time
	granted := expiration.Sub(at)
	switch {
	case granted <= 0:
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the token %s has ended before it was given, at %s, and here it is %s: "+
			"do the clocks differ?", of, format(expiration), format(at))}
	case granted > asked+tooFar:
		return nil, &Failed{ReasonTokenInvalid, fmt.Sprintf("the token %s ends at %s, and it was asked for %s: do the clocks differ?",
			of, format(expiration), asked)}
	}
	if seconds := answer.Spec.ExpirationSeconds; seconds != nil && 0 < *seconds && *seconds < math.MaxInt64/int64(time.Second) {
		granted = min(granted, time.Duration(*seconds)*time.Second)
	}
	if granted = min(granted, asked).Truncate(time.Second); granted < min(MinLifetime, asked) {
		return nil, &Failed{ReasonTokenTooShort, fmt.Sprintf("the cluster grants a token %s for %s only, and less than %s is not taken: "+
			"see --service-account-max-token-expiration of its API server, and whether the clocks differ", of, granted, MinLifetime)}
	}
	return &minted{token: answer.Status.Token, at: at, expiration: at.Add(granted)}, nil
}
