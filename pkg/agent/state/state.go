// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state is what an agent remembers, in one secret on the management cluster. It is written there before the hub is told, so
// that an agent that is killed at any line goes on from there.
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

// Rights are what keeping the state needs.
var Rights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Rule("", "secrets", "create"),
	rights.Named(registration.HubKubeconfigSecret, rights.Rule("", "secrets", "get", "update", "delete")),
}}}

// ReadRights are what reading it needs, for a process that does not keep it.
var ReadRights = rights.Rights{Management: rights.Rules{Namespace: []rbacv1.PolicyRule{
	rights.Named(registration.HubKubeconfigSecret, rights.Rule("", "secrets", "get")),
}}}

// Keys of the secret beside those that are agreed on. They are about what is under way, so that a process that starts
// anew goes on where the one before it ended.
const (
	// keyNextKey is the private key of the certificate that is being asked for, keyNextCSR the request's name on the hub.
	keyNextKey = "next.key"
	keyNextCSR = "next.csr"
	// keyRegisteredKey is for State.RegisteredKey.
	keyRegisteredKey = "registered-key-sha256"
	// keyOtherHubs is for State.Others.
	keyOtherHubs = "other-hubs"
)

// State is what an agent remembers.
type State struct {
	ClusterName, AgentName string
	// Kubeconfig, Cert and Key are the identity in use.
	Kubeconfig, Cert, Key []byte
	// NextKey and NextCSR are the identity to come.
	NextKey []byte
	NextCSR string

	// RegisteredKey is the hash of the public key that the hub knows as this agent's, as far as the agent knows.
	RegisteredKey string

	// Refusal is how the hub refuses the agent, one of registration's refusals, or empty.
	Refusal string

	// Hub is the name of the bootstrap kubeconfig of the hub that all of this is about, for an agent with several of them.
	Hub string
	// GivenUp are the hubs that were given up since the agent last worked with one, the latest last.
	GivenUp []registration.GivenUpHub
	// Others are the identities on other hubs, by the names of their bootstrap kubeconfigs.
	Others map[string]Other
}

// ReadFolder reads the identity of a secret that is mounted. What is under way is of no use to a process that does not keep the state.
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

// writeTo leaves keys that are not the agent's as they are, and says whether anything has changed.
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

// Store keeps the state in the secret, and the last that was read or written of it.
type Store struct {
	Client    kubernetes.Interface
	Namespace string

	mu   sync.Mutex
	last State
}

// Get is the state as this process knows it.
func (s *Store) Get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Load reads the secret; a secret that is not there is an empty state.
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

// Update changes the secret, and makes it when it is not there. It is only once in the secret that a state counts. The
// change is made again on what is there when another has written in between.
func (s *Store) Update(ctx context.Context, change func(*State)) (State, error) {
	return s.update(ctx, change, true)
}

func (s *Store) update(ctx context.Context, change func(*State), create bool) (State, error) {
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	var next State
	err := retry.OnError(retry.DefaultRetry, conflicts, func() error {
		secret, err := secrets.Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// Lost under way: what this process remembers is as good.
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

// Refused remembers how the hub refuses the agent, "" for not at all. If that is known already, nothing is written, nor asked. It makes no
// secret: an agent that has just left has none.
func (s *Store) Refused(ctx context.Context, refusal string) error {
	if s.Get().Refusal == refusal {
		return nil
	}
	_, err := s.update(ctx, func(s *State) { s.Refusal = refusal }, false)
	return err
}

// Remove deletes the secret. That it is not there is no error.
func (s *Store) Remove(ctx context.Context) error {
	err := s.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, registration.HubKubeconfigSecret, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing secret %s/%s: %w", s.Namespace, registration.HubKubeconfigSecret, err)
	}
	return nil
}

func (s *Store) remember(next State) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = next
	return next
}

// conflicts says whether another has written what was to be written.
func conflicts(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
