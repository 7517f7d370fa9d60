// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// grantCall is the name of the call in the backoff, and checkNote the beginning of the message about a failed check.
const (
	grantCall = "grant"
	checkNote = "Its identity could not be checked: "
)

// acceptance returns the steps that create what an accepted cluster needs. The record is written before anything is granted, and the finalizer is
// added before anything is created that must be deleted.
func (p *pass) acceptance() []kit.Step {
	return []kit.Step{
		{Name: "read the record", Do: p.readRecord},
		{Name: "revoke an earlier acceptance", Do: p.revokePrevious},
		{Name: "plan the identity", Do: p.planIdentity},
		{Name: "add the finalizer", Do: p.addFinalizer},
		{Name: "create the namespace", Do: p.objects.ensureNamespace},
		{Name: "write the record", Do: p.writeRecord},
		{Name: "grant the rights", Do: p.objects.ensureRights},
		{Name: "replace the cluster's own role by the shared one", Do: p.replaceOwnRole},
		{Name: "grant the identity", Do: p.grant},
		{Name: "report the acceptance", Do: p.reportAccepted},
	}
}

// readRecord reads the record from the cache, or from the API server if a driver may be called, for which the cache may be too stale.
func (p *pass) readRecord(ctx context.Context) error {
	var err error
	p.stored, err = record.Get(ctx, p.client, p.name)
	if err != nil {
		return err
	}
	rec := record.Of(p.stored)
	call := rec.Granted.IsZero() || rec.UID != p.cluster.UID || rec.Revoking
	if p.stored == nil {
		call, err = p.records.copy(ctx, p.name)
	}
	if err != nil || !call {
		return err
	}
	return p.readCurrentRecord(ctx)
}

// revokePrevious revokes what is left of an earlier acceptance: the record was denied, or is of another cluster with the name. It must be revoked
// before a new one is written.
func (p *pass) revokePrevious(ctx context.Context) error {
	rec := record.Of(p.stored)
	if rec.Driver == "" || !rec.Revoking && rec.UID == p.cluster.UID {
		return nil
	}
	return kit.RunSteps(ctx, []kit.Step{
		{Name: "begin the revocation of an earlier acceptance", Do: p.beginRevocation},
		{Name: "withdraw the rights of an earlier acceptance", Do: p.objects.denyOwnRole},
		{Name: "revoke the identity of an earlier acceptance", Do: p.revoke},
	})
}

// planIdentity sets the record with which the cluster is accepted: the existing one or, the first time, the one that its driver plans.
func (p *pass) planIdentity(ctx context.Context) error {
	p.planned = record.Of(p.stored)
	if p.planned.Driver != "" {
		return nil
	}
	earlier := p.planned
	planned, err := p.identities.plan(p.cluster)
	if err != nil {
		return kit.Outcomef(registration.ReasonError, "%v", err)
	}
	if earlier.Key != "" && earlier.UID == p.cluster.UID {
		if earlier.KeyNamed == "" || earlier.KeyNamed == planned.KeyNamed {
			planned.Key, planned.KeySince = earlier.Key, earlier.KeySince
		} else {
			// Accepting the cluster again accepts its new key. Earlier approvals are for the agent that had the old key.
			planned.KeySince = p.clock.Now().UTC().Format(time.RFC3339)
		}
	}
	p.planned = planned
	return p.checkIdentityFree(ctx)
}

// checkIdentityFree returns an error if another cluster has the planned identity. A cluster that is accepted later does not win because the first one has
// lost its grant for a moment, if the driver restores it.
func (p *pass) checkIdentityFree(ctx context.Context) error {
	what := p.identities.exclusive(p.planned)
	if what == "" {
		return nil
	}
	other, err := p.identities.holder(ctx, p.name, what)
	if err != nil {
		return err
	}
	if other != "" {
		return failed(lastRetry, "%s, belongs to the cluster %q, and can only belong to one: deny this cluster, or deny that one and wait until it is denied",
			what, other)
	}
	// Two workers may reconcile two clusters that were accepted at the same time, and need not observe each other's record. But each was enqueued by
	// the cache that has both clusters, so the later one observes that the other is accepted.
	other, err = p.identities.claimant(ctx, p.name, what, func(c *clusterv1.ManagedCluster) bool { return c.Spec.HubAcceptsClient })
	if err != nil || other == "" {
		return err
	}
	return failed(lastRetry, "%s, is claimed by the cluster %q, which is accepted, too, and can only belong to one: deny one of them", what, other)
}

// addFinalizer adds the finalizer: from then on the cluster needs a cleanup.
func (p *pass) addFinalizer(ctx context.Context) error {
	_, err := kit.Patch(ctx, p.client, p.cluster, func(c *clusterv1.ManagedCluster) { controllerutil.AddFinalizer(c, registration.Finalizer) })
	return err
}

// writeRecord writes the planned record.
func (p *pass) writeRecord(ctx context.Context) error {
	if p.stored != nil {
		return record.Patch(ctx, p.client, p.stored, func(rec *record.Record) { *rec = p.planned })
	}
	p.stored = record.New(p.name)
	p.planned.Write(p.stored)
	err := p.records.create(ctx, p.stored)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The cache was stale. Without its label, the record would never be in the cache.
	p.stored, err = record.Get(ctx, p.live, p.name)
	if err == nil && p.stored != nil {
		err = record.Patch(ctx, p.client, p.stored, func(*record.Record) {})
	}
	return cmp.Or(err, kit.Requeue(kit.FirstBackoff))
}

// replaceOwnRole deletes the cluster's own role once the shared role is in force.
func (p *pass) replaceOwnRole(ctx context.Context) error {
	next, err := p.objects.replaceOwnRole(ctx)
	p.requeue(next)
	return err
}

// grant calls the driver if nothing is granted yet, and when a check is due.
func (p *pass) grant(ctx context.Context) error {
	rec := record.Of(p.stored)
	by := p.Drivers.Named(rec.Driver)
	check := !rec.Granted.IsZero()
	if by == nil {
		if !check {
			return notEnabled(rec.Driver)
		}
		p.note = fmt.Sprintf("The registration driver %q, which accepted it, is no longer enabled, so its identity is not "+
			"checked: add the driver to --registration-drivers", rec.Driver)
		return nil
	}
	interval := by.CheckInterval()
	if check {
		p.note = rec.Note
		if interval <= 0 {
			return nil
		}
		if next := p.pace.untilCheck(rec.Granted, interval); next > 0 {
			p.requeue(next)
			return nil
		}
	}
	if wait, last := p.pace.wait(grantCall); wait > 0 {
		if !check {
			return repeated(wait, last)
		}
		p.note = checkNote + kit.Message(last.Error())
		p.requeue(wait)
		return nil
	}
	return p.callGrant(ctx, by, rec)
}

// callGrant has the driver grant the recorded identity, or check it.
func (p *pass) callGrant(ctx context.Context, by driver.Driver, rec record.Record) error {
	check := !rec.Granted.IsZero()
	if mover, ok := by.(driver.Mover); ok {
		// The record is written before the new identity is granted.
		rec.Identity = mover.Move(p.name, rec.Identity)
		if err := record.Patch(ctx, p.client, p.stored, func(stored *record.Record) { stored.Identity = rec.Identity }); err != nil {
			return err
		}
	}
	err := p.calls.call(ctx, by, func(ctx context.Context) error { return by.Grant(ctx, p.name, rec.Identity) })
	if isRequeue(err) {
		return err
	}
	rec.Note = ""
	var warning driver.Warning
	if errors.As(err, &warning) {
		rec.Note, err = kit.Message(warning.Error()), nil
	}
	if err != nil {
		err = fmt.Errorf("granting the cluster its identity: %w", err)
		wait := p.pace.failed(grantCall, err)
		if !check {
			return failed(wait, "%v", err)
		}
		// The agent works as far as is known, so the cluster stays accepted.
		ctrl.LoggerFrom(ctx).Error(err, "Could not check the identity of the cluster")
		p.note = checkNote + kit.Message(err.Error())
		p.requeue(wait)
		return nil
	}
	p.pace.succeeded()
	if !check {
		rec.Granted = p.clock.Now()
	}
	p.note = rec.Note
	if err := record.Patch(ctx, p.client, p.stored, func(stored *record.Record) { *stored = rec }); err != nil {
		return err
	}
	interval := by.CheckInterval()
	if interval <= 0 {
		return nil
	}
	if check {
		p.pace.checked(interval)
	}
	p.requeue(p.pace.untilCheck(rec.Granted, interval))
	return nil
}

// reportAccepted writes the condition, with the driver's note.
func (p *pass) reportAccepted(ctx context.Context) error {
	message := registration.MessageAccepted
	for _, note := range []string{p.note, p.identityNote()} {
		if note != "" {
			message += ". " + note
		}
	}
	return p.setCondition(ctx, metav1.ConditionTrue, registration.ReasonAccepted, message)
}

// identityNote returns a note if the cluster would now be accepted with another identity than the recorded one.
func (p *pass) identityNote() string {
	rec := record.Of(p.stored)
	planned, err := p.identities.plan(p.cluster)
	if err == nil && planned.SameIdentity(rec) {
		return ""
	}
	if mover, ok := p.Drivers.Named(rec.Driver).(driver.Mover); ok && err == nil && planned.Driver == rec.Driver &&
		mover.Same(planned.Identity, rec.Identity) {
		return ""
	}
	return "The cluster would now be accepted with another identity, but keeps the one that it was accepted with: to change " +
		"that, deny it, wait until it is denied, and accept it again"
}
