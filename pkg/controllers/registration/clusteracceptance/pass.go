// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// pass is one reconciliation of one cluster, with what was read for it.
type pass struct {
	*Reconciler
	// name is the name of the cluster. cluster is nil if it does not exist.
	name       string
	cluster    *clusterv1.ManagedCluster
	objects    *objects
	records    records
	identities *identities
	pace       pace

	// stored has the record of the cluster, or is nil if none exists. planned is the record with which the cluster is accepted.
	stored  *corev1.ConfigMap
	planned record.Record
	// driver is the driver that approves the cluster.
	driver driver.Driver
	// note is a note of the driver for the condition.
	note string
	// next is the delay of the next reconciliation, or 0.
	next time.Duration
}

// errDone ends a reconciliation that has nothing more to do.
var errDone error = &kit.Outcome{}

func (r *Reconciler) newPass(name string) *pass {
	identities := r.newIdentities()
	return &pass{
		Reconciler: r, name: name, records: identities.records, identities: identities, pace: r.paces.of(name),
		objects: &objects{client: r.client, live: r.live, clock: r.clock, roles: r.AgentRoles, cluster: name},
	}
}

// reconcile runs the steps for the state of the cluster.
func (p *pass) reconcile(ctx context.Context) (reconcile.Result, error) {
	err := p.records.copyCached(ctx, p.name)
	if err == nil {
		err = kit.RunSteps(ctx, p.steps(ctx))
	}
	return p.result(ctx, err)
}

// steps returns the steps for the state of the cluster. Each step checks whether it is done.
func (p *pass) steps(ctx context.Context) []kit.Step {
	switch {
	case p.cluster == nil && p.objects.anyCached(ctx):
		return p.leftovers()
	case p.cluster == nil:
		return []kit.Step{{Name: "forget the cluster", Do: p.forget}}
	case !p.cluster.DeletionTimestamp.IsZero():
		if !slices.Contains(p.cluster.Finalizers, registration.Finalizer) && !p.objects.anyCached(ctx) {
			return nil // other finalizers are left, or nothing was ever created for it
		}
		return p.removal()
	case p.cluster.Spec.HubAcceptsClient:
		return p.acceptance()
	case p.wasAccepted(ctx):
		if denied(p.cluster) && !p.objects.anyToDeny(ctx) {
			return []kit.Step{{Name: "forget the cluster", Do: p.forget}}
		}
		return p.denial()
	case p.AutoApproval:
		return p.approval()
	}
	return nil
}

// wasAccepted reports whether the hub may have objects of the cluster.
func (p *pass) wasAccepted(ctx context.Context) bool {
	return slices.Contains(p.cluster.Finalizers, registration.Finalizer) ||
		meta.FindStatusCondition(p.cluster.Status.Conditions, registration.ConditionHubAccepted) != nil ||
		p.objects.cached(ctx, record.New(p.name)) || p.objects.cached(ctx, clusterRole(p.name))
}

// requeue requests another reconciliation after that time or sooner, unless a step fails. 0 requests none.
func (p *pass) requeue(after time.Duration) {
	if after > 0 && (p.next == 0 || after < p.next) {
		p.next = after
	}
}

// forget deletes the state of the cluster's driver calls.
func (p *pass) forget(context.Context) error {
	p.pace.forget()
	return nil
}

// result converts the error of a reconciliation to a result, and writes it to the condition. Drivers have a backoff of their own: each failure writes
// a condition, which arrives as an event, and the queue's backoff does not delay events.
func (p *pass) result(ctx context.Context, err error) (reconcile.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	var out *kit.Outcome
	switch {
	case err == nil:
		return reconcile.Result{RequeueAfter: p.next}, nil
	case errors.As(err, &out):
		result := reconcile.Result{RequeueAfter: out.RequeueAfter}
		if out.Reason == "" || out.Reason == registration.ReasonResourceRemaining {
			return result, nil
		}
		if !out.Repeated {
			log.Error(out, "Could not complete the registration of the cluster")
		}
		return result, p.reportFailure(ctx, out.Reason, out.Message)
	case kit.IsStale(err):
		// The read was stale. The change arrives as an event, usually sooner than this.
		log.V(2).Info("Retrying with the current objects", "reason", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if reportErr := p.reportFailure(ctx, registration.ReasonError, err.Error()); reportErr != nil {
		log.Error(reportErr, "Could not write the condition of the cluster")
	}
	return reconcile.Result{}, err
}

// reportFailure writes an error to the cluster's condition.
func (p *pass) reportFailure(ctx context.Context, reason, message string) error {
	if p.cluster == nil || ctx.Err() != nil {
		return nil
	}
	return p.setCondition(ctx, metav1.ConditionFalse, reason, kit.Message(message))
}

// setCondition writes the condition HubAccepted, and an event if it is new.
func (p *pass) setCondition(ctx context.Context, status metav1.ConditionStatus, reason, message string) error {
	p.refresh(ctx)
	before := meta.FindStatusCondition(p.cluster.Status.Conditions, registration.ConditionHubAccepted)
	if before != nil && before.Status == status && before.Reason == reason && before.Message == message {
		// Not for the generation alone, which every taint changes.
		return nil
	}
	now := metav1.Condition{
		Type: registration.ConditionHubAccepted, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.cluster.Generation, LastTransitionTime: metav1.NewTime(p.clock.Now()),
	}
	_, err := kit.PatchStatus(ctx, p.client, p.cluster, func(c *clusterv1.ManagedCluster) { meta.SetStatusCondition(&c.Status.Conditions, now) })
	if kit.IsStale(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case reason == registration.ReasonError, reason == registration.ReasonNamespaceTerminating && (before == nil || before.Reason != reason):
		p.event(corev1.EventTypeWarning, "ManagedClusterRegistrationFailed", message)
	case reason == registration.ReasonNamespaceTerminating: // what is left changes often
	case before == nil || before.Reason != reason:
		if reason == registration.ReasonAccepted {
			p.event(corev1.EventTypeNormal, "ManagedClusterAccepted", fmt.Sprintf("The cluster %s is accepted", p.name))
		} else {
			p.event(corev1.EventTypeNormal, "ManagedClusterDenied", fmt.Sprintf("The cluster %s is denied", p.name))
		}
	case before.Message != message && message != registration.MessageAccepted:
		p.event(corev1.EventTypeWarning, "ManagedClusterRegistrationChanged", message)
	}
	return nil
}

// refresh reads the cluster again from the cache, if it is newer there and has not been accepted, denied or deleted since. The taint is written while
// a cluster is being accepted: with the earlier version, the condition would be refused.
func (p *pass) refresh(ctx context.Context) {
	now := &clusterv1.ManagedCluster{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(p.cluster), now); err != nil || now.UID != p.cluster.UID ||
		now.Spec.HubAcceptsClient != p.cluster.Spec.HubAcceptsClient || !now.DeletionTimestamp.Equal(p.cluster.DeletionTimestamp) ||
		kit.CompareVersions(now.ResourceVersion, p.cluster.ResourceVersion) <= 0 {
		return
	}
	p.cluster = now
}

// event records an event about the cluster.
func (p *pass) event(kind, reason, message string) {
	p.recorder.Eventf(p.cluster, nil, kind, reason, "Register", "%s", kit.Message(message))
}
