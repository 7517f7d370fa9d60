// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
)

// given is what a request has been given.
type given struct {
	// message for people.
	message string
	// renewal is when the access has to be renewed; zero if never.
	renewal time.Time
	// roles are what is known of those that the access refers to.
	roles target.SeenRoles
}

// grant gives the access that is asked for. Each step can be repeated after a crash: what is to be taken back is recorded first, and
// what is not asked for any more goes before what is.
func (r *Reconciler) grant(ctx context.Context, s *seen) (*given, error) {
	ar, name := s.ar, r.Hash(s.ar)
	t, err := r.reach(s.closer.config, ar, s.cluster)
	if err != nil {
		return nil, err
	}
	if err := r.hold(ctx, ar); err != nil {
		return nil, err
	}
	wanted, err := rights.Of(ar, name)
	if err != nil {
		return nil, err
	}
	if err := r.endOldTokens(ctx, s, t, name); err != nil {
		return nil, err
	}
	keep := wanted.Objects
	if ar.Spec.OIDC != nil && !trust.Holds(ar) {
		keep = nil // their subjects have names of an issuer that is about to be trusted no more
	}
	have, err := t.Cleanup(ctx, keep)
	if err != nil {
		return nil, err
	}
	if ar.Spec.OIDC != nil {
		// Before the rights: a request that is refused gets none.
		if err := r.issuers.Admit(ctx, ar, s.cluster, t); err != nil {
			return nil, err
		}
	}
	if err := t.Make(ctx, wanted, have); err != nil {
		return nil, err
	}
	granted := &given{message: "access by the OIDC provider "}
	if ar.Spec.OIDC != nil {
		granted.message += ar.Spec.OIDC.Name
		err = r.answers.OIDC(ctx, ar, s.cluster, s.closer.config)
	} else {
		granted, err = r.giveToken(ctx, s, t, name)
	}
	if err != nil {
		return nil, err
	}
	granted.roles = r.roles.Look(ctx, t, s.cluster, wanted, target.JustNow)
	return granted, nil
}

// giveToken gives a token of a ServiceAccount that has its rights.
func (r *Reconciler) giveToken(ctx context.Context, s *seen, t *target.Target, name string) (*given, error) {
	ar, config, created := s.ar, s.closer.config, time.Now()
	lifetime := answer.LifetimeFor(ar, created)
	until, err := t.RecordTokens(ctx, r.Identity, name, created.Add(lifetime))
	if err != nil {
		return nil, fmt.Errorf("recording until when tokens are valid: %w", err)
	}
	token, err := t.Token(ctx, name, lifetime)
	issued(r.Name, created, err)
	if err != nil {
		return nil, fmt.Errorf("asking for a token: %w", err)
	}
	if err := r.keepSource(ctx, s, t, name); err != nil {
		return nil, fmt.Errorf("the source of short-lived tokens: %w", err)
	}
	r.issuers.Forget(ar.UID)
	if err := r.issuers.End(ctx, ar, s.cluster); err != nil {
		return nil, err
	}
	expires := token.Status.ExpirationTimestamp.Time
	err = r.answers.Token(ctx, ar, config, answer.Token{Value: token.Status.Token, Created: created, Expires: expires, Until: until})
	if err != nil {
		return nil, err
	}
	granted := &given{renewal: answer.RenewalOf(ar, created, expires)}
	granted.message = "access by a token, which is renewed before it expires at " + expires.UTC().Format(time.RFC3339)
	if granted.renewal.IsZero() {
		granted.message = "access by a token, which expires with the request, at " + expires.UTC().Format(time.RFC3339)
	}
	return granted, nil
}

// keepSource keeps the source of short-lived tokens, if the hub has a place for it.
func (r *Reconciler) keepSource(ctx context.Context, s *seen, t *target.Target, name string) error {
	if !r.answers.Sources(ctx) {
		ctrl.LoggerFrom(ctx).V(4).Info("The hub has no namespace for token sources", "namespace", v1alpha1.TokenSourceNamespace)
		return nil
	}
	token, err := r.minters.Token(ctx, s.closer.endpoint, t, answer.TokenLifetime)
	if err != nil {
		return err
	}
	return r.answers.Source(ctx, s.ar, s.closer.config, name, token.Status.Token)
}

// endOldTokens ends tokens of a request that outlive it by now, with all that were made for the same ServiceAccount: a token
// cannot be called back, but it ends with its ServiceAccount, which is made again. The ServiceAccount says until when they are
// valid, because who asks for access can write the Secret, and remove it.
func (r *Reconciler) endOldTokens(ctx context.Context, s *seen, t *target.Target, name string) error {
	if _, ends := answer.EndOf(s.ar); !ends || s.ar.Spec.OIDC != nil {
		return nil
	}
	account := rights.ServiceAccount(name)
	if err := t.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil || !t.Owns(account) {
		return client.IgnoreNotFound(err)
	}
	expires, had := time.Time{}, s.closer.answer
	if had.err == nil && r.MadeFor(s.ar, had.Secret) {
		_, expires, _ = answer.Lifetime(had.Secret)
	}
	if !answer.Outlives(s.ar, r.EndOfTokens(account, expires), s.now) {
		return nil
	}
	return client.IgnoreNotFound(t.Delete(ctx, account, client.Preconditions{UID: &account.UID}))
}

// followRoles looks whether the roles of a request whose access is in place are still there, or there by now. A cluster that does
// not answer must not keep the requests of others waiting.
func (r *Reconciler) followRoles(ctx context.Context, s *seen) error {
	wanted, err := rights.Of(s.ar, r.Hash(s.ar))
	if err != nil || len(wanted.ReferredTo()) == 0 || s.cluster.Status.Phase != v1alpha1.StatusPhaseReady || s.closer.unreachable != nil {
		return nil //nolint:nilerr // what was granted is not wrong; the Cluster says what else is
	}
	t, err := target.Soon(s.closer.config, nil)
	if err != nil {
		return err
	}
	return r.answers.Roles(ctx, s.ar, r.roles.Look(ctx, t, s.cluster, wanted, target.Lately))
}
