// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state stores an agent's state, in one secret on the management cluster. It is written before the corresponding request to the hub, so that
// an agent that is killed at any line continues from there.
package state

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/clusterhub/clusterhub/pkg/agent/files"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Rights are the rights that reading and writing the state needs.
var Rights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Rule("", "secrets", "create"),
	rights.Named(registration.HubKubeconfigSecret, rights.Rule("", "secrets", "get", "update", "delete")),
}}}

// ReadRights are the rights that reading the state needs, for a process that does not write it.
var ReadRights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Named(registration.HubKubeconfigSecret, rights.Rule("", "secrets", "get")),
}}}

// Keys of the secret beside those of package registration. They are for operations in progress, so that a new process continues where the previous
// one ended.
const (
	// keyNextKey is the private key of the pending certificate request, and keyNextCSR the request's name on the hub.
	keyNextKey = "next.key"
	keyNextCSR = "next.csr"
	// keyRegisteredKey is the key for State.RegisteredKey.
	keyRegisteredKey = "registered-key-sha256"
	// keyOtherHubs is the key for State.Others.
	keyOtherHubs = "other-hubs"
)

// State is the state of an agent.
type State struct {
	ClusterName, AgentName string
	// Kubeconfig, Cert and Key are the identity in use.
	Kubeconfig, Cert, Key []byte
	// NextKey and NextCSR are the private key and the certificate request of the next identity.
	NextKey []byte
	NextCSR string

	// RegisteredKey is the hash of the public key that the hub knows for this agent, as far as the agent knows.
	RegisteredKey string

	// Refusal is how the hub refuses the agent, one of registration's refusals, or empty.
	Refusal string

	// Hub is the name of the bootstrap kubeconfig of the hub that the state is for, for an agent with several of them.
	Hub string
	// GivenUp are the hubs that were given up since the agent last worked with one, the latest last.
	GivenUp []registration.GivenUpHub
	// Others are the identities on other hubs, by the names of their bootstrap kubeconfigs.
	Others map[string]Other
}

// ReadFolder reads the identity from a mounted secret. It ignores operations in progress, which a process that does not write the state does not
// need.
func ReadFolder(dir string) (State, error) {
	data, err := files.ReadFolder(dir, registration.KeyClusterName, registration.KeyAgentName, registration.KeyKubeconfig,
		registration.KeyTLSCert, registration.KeyTLSKey)
	return stateOf(data), err
}

func stateOf(d map[string][]byte) State {
	return State{
		ClusterName:   string(d[registration.KeyClusterName]),
		AgentName:     string(d[registration.KeyAgentName]),
		Kubeconfig:    d[registration.KeyKubeconfig],
		Cert:          d[registration.KeyTLSCert],
		Key:           d[registration.KeyTLSKey],
		NextKey:       d[keyNextKey],
		NextCSR:       string(d[keyNextCSR]),
		RegisteredKey: string(d[keyRegisteredKey]),
		Refusal:       string(d[registration.KeyRefusal]),
		Hub:           string(d[registration.KeyHub]),
		GivenUp:       registration.ParseGivenUp(d[registration.KeyGivenUpHubs]),
		Others:        parseOthers(d[keyOtherHubs]),
	}
}

// writeTo writes the state to a secret, and reports whether that changes it. Keys that are not the agent's stay unchanged.
func (s *State) writeTo(secret *corev1.Secret) bool {
	before := maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range map[string][]byte{
		registration.KeyClusterName: []byte(s.ClusterName),
		registration.KeyAgentName:   []byte(s.AgentName),
		registration.KeyKubeconfig:  s.Kubeconfig,
		registration.KeyTLSCert:     s.Cert,
		registration.KeyTLSKey:      s.Key,
		keyNextKey:                  s.NextKey,
		keyNextCSR:                  []byte(s.NextCSR),
		keyRegisteredKey:            []byte(s.RegisteredKey),
		registration.KeyRefusal:     []byte(s.Refusal),
		registration.KeyHub:         []byte(s.Hub),
		registration.KeyGivenUpHubs: registration.FormatGivenUp(s.GivenUp),
		keyOtherHubs:                formatOthers(s.Others),
	} {
		if len(value) == 0 {
			delete(secret.Data, key)
			continue
		}
		secret.Data[key] = value
	}
	return !maps.EqualFunc(before, secret.Data, bytes.Equal)
}

// Store reads and writes the state in the secret, and caches it.
type Store struct {
	Client    kubernetes.Interface
	Namespace string

	mu   sync.Mutex
	last State
}

// Get returns the state that was last read or written.
func (s *Store) Get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Load reads the secret. If it does not exist, the state is empty.
func (s *Store) Load(ctx context.Context) (State, error) {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.remember(State{}), nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading secret %s/%s: %w", s.Namespace, registration.HubKubeconfigSecret, err)
	}
	return s.remember(stateOf(secret.Data)), nil
}

// Update changes the secret, and creates it if it does not exist. The state counts only once it is in the secret. If another process has changed the
// secret concurrently, the change is made again to the new state.
func (s *Store) Update(ctx context.Context, change func(*State)) (State, error) {
	return s.update(ctx, change, true)
}

func (s *Store) update(ctx context.Context, change func(*State), create bool) (State, error) {
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	var next State
	err := retry.OnError(retry.DefaultRetry, conflicts, func() error {
		secret, err := secrets.Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// The secret was deleted: the cached state is just as good.
			next = s.Get()
			change(&next)
			if !create {
				return nil
			}
			secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: registration.HubKubeconfigSecret}}
			next.writeTo(secret)
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		next = stateOf(secret.Data)
		change(&next)
		if !next.writeTo(secret) {
			return nil
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return State{}, fmt.Errorf("writing secret %s/%s: %w", s.Namespace, registration.HubKubeconfigSecret, err)
	}
	return s.remember(next), nil
}

// Refused records how the hub refuses the agent, "" if it does not. If the cache has that already, no request is sent. It does not create the secret:
// an agent that has just left has none.
func (s *Store) Refused(ctx context.Context, refusal string) error {
	if s.Get().Refusal == refusal {
		return nil
	}
	_, err := s.update(ctx, func(s *State) { s.Refusal = refusal }, false)
	return err
}

// Remove deletes the secret, if it exists.
func (s *Store) Remove(ctx context.Context) error {
	err := s.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, registration.HubKubeconfigSecret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting secret %s/%s: %w", s.Namespace, registration.HubKubeconfigSecret, err)
	}
	return nil
}

func (s *Store) remember(next State) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = next
	return next
}

// conflicts reports whether another process has written the secret concurrently.
func conflicts(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
