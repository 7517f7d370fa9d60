// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// bindingInterval is the interval of checks of a binding that has a finalizer. Its deletion arrives as an event.
	bindingInterval = time.Minute

	// revokeCall is the name of the call in the backoff.
	revokeCall = "revoke"
)

// denial returns the steps that revoke what a cluster was granted, the rights first. Objects that the caches do not have yet are deleted, too. The
// agents may still read that the cluster is denied.
func (p *pass) denial() []kit.Step {
	return []kit.Step{
		{Name: "read the record", Do: p.readCurrentRecord},
		{Name: "begin the revocation", Do: p.beginRevocation},
		{Name: "withdraw the rights to the hub", Do: p.objects.denyOwnRole},
		{Name: "withdraw the rights to the namespace", Do: p.objects.deleteRoleBindings},
		{Name: "revoke the identity", Do: p.revoke},
		{Name: "delete the Lease", Do: p.objects.deleteLease},
		{Name: "report the denial", Do: p.reportDenied},
	}
}

// removal returns the steps that delete everything of a cluster that is being deleted.
func (p *pass) removal() []kit.Step {
	return []kit.Step{
		{Name: "delete what the cluster has", Do: p.finalize},
		{Name: "remove the finalizer", Do: p.removeFinalizer},
		{Name: "forget the cluster", Do: p.forget},
	}
}

// leftovers returns the steps that delete what is left of a cluster that does not exist: its finalizer was removed by force, or the hub's data was
// restored from an earlier state.
func (p *pass) leftovers() []kit.Step {
	return append([]kit.Step{{Name: "check that the cluster does not exist", Do: p.confirmGone}}, p.cleanup()...)
}

// cleanup returns the steps that delete the rights of a cluster's agents, revoke what its driver granted, and then delete the rest. The record is the
// last.
func (p *pass) cleanup() []kit.Step {
	return []kit.Step{
		{Name: "read the record", Do: p.readCurrentRecord},
		{Name: "begin the revocation", Do: p.beginRevocation},
		{Name: "delete the cluster's own role", Do: p.objects.deleteOwnRole},
		{Name: "delete the bindings", Do: p.objects.deleteRoleBindings},
		{Name: "revoke the identity", Do: p.revoke},
		{Name: "delete the Lease", Do: p.objects.deleteLease},
		{Name: "wait for the finalizers of the bindings", Do: p.objects.confirmBindingsDeleted},
		{Name: "delete the record", Do: p.deleteRecord},
	}
}

// confirmGone ends the reconciliation if the API server has the cluster, which arrives as an event then.
func (p *pass) confirmGone(ctx context.Context) error {
	err := p.live.Get(ctx, client.ObjectKey{Name: p.name}, &clusterv1.ManagedCluster{})
	if err == nil {
		return errDone
	}
	return kit.IgnoreGone(err)
}

// readCurrentRecord reads the record from the API server.
func (p *pass) readCurrentRecord(ctx context.Context) error {
	var err error
	p.stored, err = p.records.current(ctx, p.name)
	return err
}

// beginRevocation marks the record as being revoked, before anything is revoked.
func (p *pass) beginRevocation(ctx context.Context) error {
	if p.stored == nil {
		return nil
	}
	return record.Patch(ctx, p.client, p.stored, func(rec *record.Record) {
		rec.Granted, rec.Note, rec.Revoking = time.Time{}, "", true
	})
}

// revoke has the driver revoke what the record says, and then deletes the driver from the record.
func (p *pass) revoke(ctx context.Context) error {
	rec := record.Of(p.stored)
	if rec.Driver == "" {
		return nil
	}
	by := p.Drivers.Named(rec.Driver)
	if by == nil {
		return notEnabled(rec.Driver)
	}
	if wait, last := p.pace.wait(revokeCall); wait > 0 {
		return repeated(wait, last)
	}
	err := p.calls.call(ctx, by, func(ctx context.Context) error { return by.Revoke(ctx, p.name, rec.Identity) })
	if isRequeue(err) {
		return err
	}
	if err != nil {
		err = fmt.Errorf("revoking the cluster's identity: %w", err)
		return failed(p.pace.failed(revokeCall, err), "%v", err)
	}
	p.pace.forget()
	return record.Patch(ctx, p.client, p.stored, func(rec *record.Record) { *rec = rec.Revoked() })
}

// reportDenied writes the condition.
func (p *pass) reportDenied(ctx context.Context) error {
	return p.setCondition(ctx, metav1.ConditionFalse, registration.ReasonDenied, registration.MessageDenied)
}

// deleteRecord deletes the ConfigMap of the record.
func (p *pass) deleteRecord(ctx context.Context) error {
	if p.stored == nil {
		return nil
	}
	return p.objects.delete(ctx, p.stored)
}

// finalize deletes everything of a cluster that is being deleted, and reports what remains.
func (p *pass) finalize(ctx context.Context) error {
	err := p.deleteDelivered(ctx)
	delivered := err != nil
	if !delivered {
		err = kit.RunSteps(ctx, p.cleanup())
	}
	if reportErr := p.reportDeletion(ctx, delivered, err); reportErr != nil {
		return reportErr
	}
	return err
}

// removeFinalizer removes the finalizer.
func (p *pass) removeFinalizer(ctx context.Context) error {
	_, err := kit.Patch(ctx, p.client, p.cluster, func(c *clusterv1.ManagedCluster) { controllerutil.RemoveFinalizer(c, registration.Finalizer) })
	if kit.IgnoreGone(err) != nil {
		return fmt.Errorf("removing the finalizer from the ManagedCluster: %w", err)
	}
	return nil
}

// notEnabled returns an Outcome for a record whose driver is not enabled.
func notEnabled(driver string) error {
	return failed(0, "the cluster was accepted by the registration driver %q, which is not enabled: add it to --registration-drivers", driver)
}
