// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answer writes the results of an AccessRequest to the hub: its Secret, the source of its short-lived tokens, and its status.
package answer

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// Answers writes results to the hub.
type Answers struct {
	hub.Identity
	client client.Client
	// live reads what the caches do not have: Secrets, of which a provider may only read those that it knows by name.
	live   client.Reader
	events events.EventRecorder
	// place caches whether the hub has a namespace for token sources.
	place remembered
}

// New returns Answers that write with c, and read uncached with live.
func New(own hub.Identity, c client.Client, live client.Reader, recorder events.EventRecorder) *Answers {
	return &Answers{Identity: own, client: c, live: live, events: recorder}
}

// secretNames returns the names of all Secrets that a request can have.
func (r *Answers) secretNames(ctx context.Context, ar *v1alpha1.AccessRequest) []types.NamespacedName {
	if r.Sources(ctx) {
		return []types.NamespacedName{hub.AnswerName(ar), hub.TokenSourceName(ar)}
	}
	return []types.NamespacedName{hub.AnswerName(ar)}
}

// Sources reports whether the hub has a namespace for the sources of short-lived tokens. Not every hub serves them.
func (r *Answers) Sources(ctx context.Context) bool {
	return r.place.get(func() bool {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := r.live.Get(ctx, types.NamespacedName{Name: v1alpha1.TokenSourceNamespace}, namespace)
		return !apierrors.IsNotFound(err)
	})
}

// remembered is an answer that is valid for a while.
type remembered struct {
	lock   sync.Mutex
	answer bool
	until  time.Time
}

func (r *remembered) get(ask func() bool) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now := time.Now(); now.After(r.until) {
		r.answer, r.until = ask(), now.Add(10*time.Second)
	}
	return r.answer
}

// NotManaged returns the error that a Secret is not the provider's to change.
func NotManaged(secret *corev1.Secret) error {
	return hub.Because(hub.ReasonNotManaged, fmt.Errorf("the Secret '%s' was not created by this provider for the request, "+
		"and is not changed: delete it", client.ObjectKeyFromObject(secret)))

}

// Secret reads a Secret.
func (r *Answers) Secret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, name, secret)
	if apierrors.IsForbidden(err) {
		err = hub.Because(hub.ReasonSecretsForbidden, fmt.Errorf("the provider is not allowed to write Secrets in the namespace %q: %s",
			name.Namespace, r.bind(ctx, name.Namespace)))

	}
	return secret, err
}

// bind returns the command that lets this provider write Secrets in a namespace.
func (r *Answers) bind(ctx context.Context, namespace string) string {
	subject, review := "--serviceaccount=NAMESPACE:NAME", &authenticationv1.SelfSubjectReview{}
	if err := r.client.Create(ctx, review); err == nil {
		subject = "--user=" + review.Status.UserInfo.Username
	}
	if in, name, err := serviceaccount.SplitUsername(review.Status.UserInfo.Username); err == nil {
		subject = "--serviceaccount=" + in + ":" + name
	}
	return diagnosis.LetWriteSecrets(r.Name, namespace, subject)
}

// write creates or updates a Secret. It does not change one that belongs to others.
func (r *Answers) write(ctx context.Context, secret *corev1.Secret, ar *v1alpha1.AccessRequest) error {
	err := r.client.Create(ctx, secret.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := r.Secret(ctx, client.ObjectKeyFromObject(secret))
	if err != nil {
		return err
	}
	if !r.CreatedFor(ar, have) {
		return NotManaged(have)
	}
	have.Annotations, have.Data = secret.Annotations, secret.Data
	return r.client.Update(ctx, have)
}

// Delete deletes the Secrets of a request.
func (r *Answers) Delete(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	for _, name := range r.secretNames(ctx, ar) {
		err := r.deleteOne(ctx, ar, name)
		if hub.ReasonOf(err, "") == hub.ReasonSecretsForbidden && name == hub.AnswerName(ar) && !ar.DeletionTimestamp.IsZero() {
			// The garbage collector deletes it with the request, its owner. When a whole namespace is deleted, the RoleBinding in it may be gone
			// first.
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteOne deletes a Secret, if it was created for the request.
func (r *Answers) deleteOne(ctx context.Context, ar *v1alpha1.AccessRequest, name types.NamespacedName) error {
	secret, err := r.Secret(ctx, name)
	if err != nil || !r.CreatedFor(ar, secret) {
		return client.IgnoreNotFound(err)
	}
	uid := secret.UID
	return client.IgnoreNotFound(r.client.Delete(ctx, secret, client.Preconditions{UID: &uid}))
}
