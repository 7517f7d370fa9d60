// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// conflictAttempts is the number of attempts of one load when other replicas write concurrently.
const conflictAttempts = 10

// store reads and writes the Secret. Replicas coordinate through it alone: creating fails if it exists, updating fails if it has changed since it was
// read.
type store struct {
	secrets   corev1client.SecretInterface
	namespace string
}

// load returns the content of the Secret at now: it creates the Secret if it does not exist, and writes a rotation step that is due. If it returns
// both content and an error, only the write has failed; the content was read and can be served.
func (s *store) load(ctx context.Context, now time.Time) (*content, error) {
	for range conflictAttempts {
		secret, err := s.secrets.Get(ctx, SecretName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			created, err := s.create(ctx, now)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return created, err
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read Secret %s/%s: %w", s.namespace, SecretName, err)
		}
		found, err := decode(secret)
		if err != nil {
			return nil, err
		}
		due, changed, err := found.advance(now)
		if err != nil || !changed {
			return found, err
		}
		update := secret.DeepCopy()
		if err := encode(due, update); err != nil {
			return found, err
		}
		_, err = s.secrets.Update(ctx, update, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return found, fmt.Errorf("cannot rotate the CA in Secret %s/%s: %w", s.namespace, SecretName, err)
		}
		return due, nil
	}
	return nil, fmt.Errorf("the Secret %s/%s changed %d times while it was read", s.namespace, SecretName, conflictAttempts)
}

func (s *store) create(ctx context.Context, now time.Time) (*content, error) {
	c, err := newContent(now)
	if err != nil {
		return nil, err
	}
	secret, err := newSecret(s.namespace, c)
	if err != nil {
		return nil, err
	}
	if _, err := s.secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("cannot create Secret %s/%s: %w", s.namespace, SecretName, err)
	}
	return c, nil
}
