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

// given is the access that a request was granted.
type given struct {
	// message is for users.
	message string
	// renewal is the time when the access must be renewed; zero if never.
	renewal time.Time
	// roles are the observations about the roles that the access refers to.
	roles target.SeenRoles
}

// grant grants the requested access. Each step can be repeated after a crash: what must be revoked later is recorded first, and what is no longer
// requested is deleted before new objects are created.
func (r *Reconciler) grant(ctx context.Context, s *observation) (*given, error) {
	ar, name := s.ar, r.Hash(s.ar)
	t, err := r.reach(s.closer.config, ar, s.cluster)
	if err != nil {
		return nil, err
	}
	if err := r.addFinalizer(ctx, ar); err != nil {
		return nil, err
	}
	wanted, err := rights.Of(ar, name)
	if err != nil {
		return nil, err
	}
	if err := r.revokeOldTokens(ctx, s, t, name); err != nil {
		return nil, err
	}
	keep := wanted.Objects
	if ar.Spec.OIDC != nil && !trust.Holds(ar) {
		keep = nil // the names of their subjects belong to an issuer whose trust is about to end
	}
	have, err := t.Cleanup(ctx, keep)
	if err != nil {
		return nil, err
	}
	if ar.Spec.OIDC != nil {
		// Before the rights: a rejected request gets none.
		if err := r.issuers.Admit(ctx, ar, s.cluster, t); err != nil {
			return nil, err
		}
	}
	if err := t.ApplyRights(ctx, wanted, have); err != nil {
		return nil, err
	}
	granted := &given{message: "access with the OIDC provider "}
	if ar.Spec.OIDC != nil {
		granted.message += ar.Spec.OIDC.Name
		err = r.answers.OIDC(ctx, ar, s.cluster, s.closer.config)
	} else {
		granted, err = r.grantToken(ctx, s, t, name)
	}
	if err != nil {
		return nil, err
	}
	granted.roles = r.roles.Check(ctx, t, s.cluster, wanted, target.JustNow)
	return granted, nil
}

// grantToken issues a token of a ServiceAccount that has the rights.
func (r *Reconciler) grantToken(ctx context.Context, s *observation, t *target.Target, name string) (*given, error) {
	ar, config, created := s.ar, s.closer.config, time.Now()
	lifetime := answer.LifetimeFor(ar, created)
	until, err := t.RecordTokens(ctx, r.Identity, name, created.Add(lifetime))
	if err != nil {
		return nil, fmt.Errorf("recording the expiration time of the tokens: %w", err)
	}
	token, err := t.Token(ctx, name, lifetime)
	issued(r.Name, created, err)
	if err != nil {
		return nil, fmt.Errorf("requesting a token: %w", err)
	}
	if err := r.syncSource(ctx, s, t, name); err != nil {
		return nil, fmt.Errorf("the source of short-lived tokens: %w", err)
	}
	r.issuers.Forget(ar.UID)
	if err := r.issuers.Revoke(ctx, ar, s.cluster); err != nil {
		return nil, err
	}
	expires := token.Status.ExpirationTimestamp.Time
	err = r.answers.Token(ctx, ar, config, answer.Token{Value: token.Status.Token, Created: created, Expires: expires, Until: until})
	if err != nil {
		return nil, err
	}
	granted := &given{renewal: answer.RenewalOf(ar, created, expires)}
	granted.message = "access with a token, which is renewed before it expires at " + expires.UTC().Format(time.RFC3339)
	if granted.renewal.IsZero() {
		granted.message = "access with a token, which expires with the request at " + expires.UTC().Format(time.RFC3339)
	}
	return granted, nil
}

// syncSource reconciles the source of short-lived tokens, if the hub has a namespace for it.
func (r *Reconciler) syncSource(ctx context.Context, s *observation, t *target.Target, name string) error {
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

// revokeOldTokens invalidates tokens of a request that outlive it, with all others of the same ServiceAccount: a token cannot be revoked, but it becomes
// invalid with its ServiceAccount, which is recreated. The ServiceAccount records until when they are valid, because requesters can write the Secret,
// and delete it.
func (r *Reconciler) revokeOldTokens(ctx context.Context, s *observation, t *target.Target, name string) error {
	if _, ends := answer.DeletionTime(s.ar); !ends || s.ar.Spec.OIDC != nil {
		return nil
	}
	account := rights.ServiceAccount(name)
	if err := t.Get(ctx, client.ObjectKeyFromObject(account), account); err != nil || !t.Owns(account) {
		return client.IgnoreNotFound(err)
	}
	expires, had := time.Time{}, s.closer.answer
	if had.err == nil && r.CreatedFor(s.ar, had.Secret) {
		_, expires, _ = answer.Lifetime(had.Secret)
	}
	if !answer.Outlives(s.ar, r.TokensExpire(account, expires), s.now) {
		return nil
	}
	return client.IgnoreNotFound(t.Delete(ctx, account, client.Preconditions{UID: &account.UID}))
}

// followRoles checks whether the roles of a request whose access is in place still exist, or exist now. A cluster that does not respond must not
// delay the requests of others.
func (r *Reconciler) followRoles(ctx context.Context, s *observation) error {
	wanted, err := rights.Of(s.ar, r.Hash(s.ar))
	if err != nil || len(wanted.ReferredTo()) == 0 || s.cluster.Status.Phase != v1alpha1.StatusPhaseReady || s.closer.unreachable != nil {
		return nil //nolint:nilerr // what was granted is not wrong; the Cluster reports other problems
	}
	t, err := target.WithShortTimeout(s.closer.config, nil)
	if err != nil {
		return err
	}
	return r.answers.Roles(ctx, s.ar, r.roles.Check(ctx, t, s.cluster, wanted, target.Lately))
}
