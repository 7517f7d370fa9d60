// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Keys of the secret beside those that are agreed on. They are about what is under way, so that a process that starts
// anew goes on where the one before it ended.
const (
	// keyNextKey is the private key of the certificate that is being asked for, keyNextCSR the request's name on the hub.
	keyNextKey = "next.key"
	keyNextCSR = "next.csr"
	// keyRegisteredKey is the hash of the public key that the hub knows as this agent's, as far as the agent knows.
	keyRegisteredKey = "registered-key-sha256"
)

// state is what an agent remembers, in one secret on its own cluster.
type state struct {
	clusterName, agentName string
	// kubeconfig, cert and key are the identity in use.
	kubeconfig, cert, key []byte
	// nextKey and nextCSR are the identity to come.
	nextKey []byte
	nextCSR string

	registeredKey string
}

func stateOf(secret *corev1.Secret) state {
	d := secret.Data
	return state{
		clusterName:   string(d[registration.KeyClusterName]),
		agentName:     string(d[registration.KeyAgentName]),
		kubeconfig:    d[registration.KeyKubeconfig],
		cert:          d[registration.KeyTLSCert],
		key:           d[registration.KeyTLSKey],
		nextKey:       d[keyNextKey],
		nextCSR:       string(d[keyNextCSR]),
		registeredKey: string(d[keyRegisteredKey]),
	}
}

// writeTo leaves keys that are not the agent's as they are, and says whether anything has changed.
func (s *state) writeTo(secret *corev1.Secret) bool {
	before := maps.Clone(secret.Data)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range map[string][]byte{
		registration.KeyClusterName: []byte(s.clusterName),
		registration.KeyAgentName:   []byte(s.agentName),
		registration.KeyKubeconfig:  s.kubeconfig,
		registration.KeyTLSCert:     s.cert,
		registration.KeyTLSKey:      s.key,
		keyNextKey:                  s.nextKey,
		keyNextCSR:                  []byte(s.nextCSR),
		keyRegisteredKey:            []byte(s.registeredKey),
	} {
		if len(value) == 0 {
			delete(secret.Data, key)
			continue
		}
		secret.Data[key] = value
	}
	return !maps.EqualFunc(before, secret.Data, bytes.Equal)
}

// store keeps the state in the secret, and the last that was read or written of it.
type store struct {
	client    kubernetes.Interface
	namespace string

	mu   sync.Mutex
	last state
}

// get is the state as this process knows it.
func (s *store) get() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// load reads the secret; a secret that is not there is an empty state.
func (s *store) load(ctx context.Context) (state, error) {
	secret, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.remember(state{}), nil
	}
	if err != nil {
		return state{}, fmt.Errorf("reading secret %s/%s: %w", s.namespace, registration.HubKubeconfigSecret, err)
	}
	return s.remember(stateOf(secret)), nil
}

// update changes the secret, and makes it when it is not there. It is only once in the secret that a state counts. The
// change is made again on what is there when another has written in between.
func (s *store) update(ctx context.Context, change func(*state)) (state, error) {
	secrets := s.client.CoreV1().Secrets(s.namespace)
	var next state
	err := retry.OnError(retry.DefaultRetry, conflicts, func() error {
		secret, err := secrets.Get(ctx, registration.HubKubeconfigSecret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			// Lost under way: what this process remembers is as good.
			next = s.get()
			change(&next)
			secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.namespace, Name: registration.HubKubeconfigSecret}}
			next.writeTo(secret)
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		next = stateOf(secret)
		change(&next)
		if !next.writeTo(secret) {
			return nil
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return state{}, fmt.Errorf("writing secret %s/%s: %w", s.namespace, registration.HubKubeconfigSecret, err)
	}
	return s.remember(next), nil
}

func (s *store) remember(next state) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = next
	return next
}

// conflicts says whether another has written what was to be written.
func conflicts(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
