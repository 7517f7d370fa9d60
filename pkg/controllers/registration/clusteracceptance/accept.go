// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// accept creates what an accepted cluster needs. Each step checks by itself whether it is done.
func (r *Reconciler) accept(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	kept, pinned, err := r.pin(ctx, cluster)
	if err != nil {
		return err
	}
	// From here on the cluster needs a cleanup.
	if err := r.setFinalizer(ctx, cluster, true); err != nil {
		return err
	}
	if err := r.ensureNamespace(ctx, cluster.Name); err != nil {
		return err
	}
	kept, err = r.ensureRecord(ctx, cluster.Name, kept, pinned)
	if err != nil {
		return err
	}
	if err := r.ensureRights(ctx, cluster); err != nil {
		return err
	}
	again, err := r.dropOwnRole(ctx, cluster.Name)
	if err != nil {
		return err
	}
	note, next, err := r.grant(ctx, cluster, kept)
	if err != nil {
		return err
	}
	if again > 0 && (next == 0 || again < next) {
		next = again
	}
	message := registration.MessageAccepted
	for _, note := range []string{note, r.changed(cluster, record.Of(kept))} {
		if note != "" {
			message += ". " + note
		}
	}
	if err := r.condition(ctx, cluster, metav1.ConditionTrue, registration.ReasonAccepted, message); err != nil {
		return err
	}
	if next > 0 {
		return kit.Requeue(next)
	}
	return nil
}

// pin returns the record with which the cluster is accepted: the existing one or, the first time, the one that its driver plans. What is left of an
// earlier acceptance is revoked before.
func (r *Reconciler) pin(ctx context.Context, cluster *clusterv1.ManagedCluster) (*corev1.ConfigMap, record.Record, error) {
	kept, err := record.Get(ctx, r.client, cluster.Name)
	if err != nil {
		return nil, record.Record{}, err
	}
	pinned := record.Of(kept)
	older := false
	if kept == nil {
		older, err = r.copy(ctx, cluster.Name)
	}
	if err == nil && (older || kept != nil && (pinned.Granted.IsZero() || pinned.UID != cluster.UID || pinned.Revoking)) {
		// A driver call follows, for which the cache may be too stale.
		kept, err = r.liveRecord(ctx, cluster.Name)
		pinned = record.Of(kept)
	}
	if err != nil {
		return nil, record.Record{}, err
	}
	if pinned.Driver != "" && (pinned.Revoking || pinned.UID != cluster.UID) {
		// The record was denied, or is of another cluster with the name. It must be revoked before a new one is written.
		if err := r.beginRevocation(ctx, kept); err != nil {
			return nil, record.Record{}, err
		}
		if err := r.denyOwnRole(ctx, cluster.Name); err != nil {
			return nil, record.Record{}, err
		}
		if err := r.revoke(ctx, cluster.Name, kept); err != nil {
			return nil, record.Record{}, err
		}
		pinned = record.Of(kept)
	}
	if pinned.Driver != "" {
		return kept, pinned, nil
	}
	planned, err := r.plan(cluster)
	if err != nil {
		return nil, record.Record{}, kit.Outcomef(registration.ReasonError, "%v", err)
	}
	if pinned.Key != "" && pinned.UID == cluster.UID {
		if pinned.KeyNamed == "" || pinned.KeyNamed == planned.KeyNamed {
			planned.Key, planned.KeySince = pinned.Key, pinned.KeySince
		} else {
			// Accepting the cluster again accepts its new key. Earlier approvals are for the agent that had the old key.
			planned.KeySince = r.clock.Now().UTC().Format(time.RFC3339)
		}
	}
	return kept, planned, r.unheld(ctx, cluster, planned)
}

// plan returns the record with which the cluster would be accepted now.
func (r *Reconciler) plan(cluster *clusterv1.ManagedCluster) (record.Record, error) {
	if err := registration.CheckName(cluster.Name); err != nil {
		return record.Record{}, err
	}
	driver, err := r.Drivers.For(cluster)
	if err != nil {
		return record.Record{}, err
	}
	if _, err := registration.Requesters(cluster.Annotations); err != nil {
		return record.Record{}, err
	}
	planned, err := driver.Plan(cluster)
	key := agentcsr.PlannedKey(cluster.Annotations)
	return record.Record{
		Driver: driver.Name(), Identity: planned, UID: cluster.UID, Key: key, KeyNamed: cmp.Or(key, registration.NoKey),
		Requesters: cluster.Annotations[registration.AnnotationRequesters],
	}, err
}

// changed returns a message if the cluster would now be accepted with another identity.
func (r *Reconciler) changed(cluster *clusterv1.ManagedCluster, pinned record.Record) string {
	planned, err := r.plan(cluster)
	if err == nil && planned.SameIdentity(pinned) {
		return ""
	}
	if mover, ok := r.Drivers.Named(pinned.Driver).(driver.Mover); ok && err == nil && planned.Driver == pinned.Driver &&
		mover.Same(planned.Identity, pinned.Identity) {
		return ""
	}
	return "The cluster would now be accepted with another identity, but keeps the one that it was accepted with: to change " +
		"that, deny it, wait until it is denied, and accept it again"
}

// ensureRecord writes the record before anything is granted.
func (r *Reconciler) ensureRecord(ctx context.Context, cluster string, kept *corev1.ConfigMap, pinned record.Record) (*corev1.ConfigMap, error) {
	if kept == nil {
		kept = record.New(cluster)
		pinned.Write(kept)
		err := r.create(ctx, kept)
		if !apierrors.IsAlreadyExists(err) {
			return kept, err
		}
		// The cache was stale. Without its label, the record would never be in the cache.
		kept, err = record.Get(ctx, r.live, cluster)
		if err == nil && kept != nil {
			err = record.Patch(ctx, r.client, kept, func(*record.Record) {})
		}
		return nil, cmp.Or(err, kit.Requeue(kit.FirstBackoff))
	}
	return kept, record.Patch(ctx, r.client, kept, func(kept *record.Record) { *kept = pinned })
}

// create creates a new record.
func (r *Reconciler) create(ctx context.Context, kept *corev1.ConfigMap) error {
	err := r.client.Create(ctx, kept)
	if kit.IsGone(err) {
		return failed(kit.MaxBackoff, "the namespace %q, in which the hub records the identities of accepted clusters, does not exist: apply "+
			"the manifests of the hub", record.Namespace)
	}
	return err
}

// grant calls the driver if nothing is granted yet, and when a check is due. It returns a note for the condition and the time until the next check.
func (r *Reconciler) grant(ctx context.Context, cluster *clusterv1.ManagedCluster, kept *corev1.ConfigMap) (
	note string, next time.Duration, err error) {
	pinned := record.Of(kept)
	by := r.Drivers.Named(pinned.Driver)
	if by == nil {
		if pinned.Granted.IsZero() {
			return "", 0, notEnabled(pinned.Driver)
		}
		return fmt.Sprintf("The registration driver %q, which accepted it, is no longer enabled, so its identity is not "+
			"checked: add the driver to --registration-drivers", pinned.Driver), 0, nil
	}
	interval := by.CheckInterval()
	check := !pinned.Granted.IsZero()
	if check {
		if interval <= 0 {
			return pinned.Note, 0, nil
		}
		if next := r.paces.untilCheck(cluster.Name, pinned.Granted, interval); next > 0 {
			return pinned.Note, next, nil
		}
	}
	const what = "grant"
	if wait, last := r.paces.wait(cluster.Name, what); wait > 0 {
		if check {
			return checkNote + kit.Message(last.Error()), wait, nil
		}
		return "", 0, repeated(wait, last)
	}
	if mover, ok := by.(driver.Mover); ok {
		// The record is written before the new identity is granted.
		pinned.Identity = mover.Move(cluster.Name, pinned.Identity)
		if err := record.Patch(ctx, r.client, kept, func(kept *record.Record) { kept.Identity = pinned.Identity }); err != nil {
			return "", 0, err
		}
	}
	err = r.call(ctx, by, func(ctx context.Context) error { return by.Grant(ctx, cluster.Name, pinned.Identity) })
	if isRequeue(err) {
		return "", 0, err
	}
	var warning driver.Warning
	if errors.As(err, &warning) {
		note, err = kit.Message(warning.Error()), nil
	}
	if err != nil {
		err = fmt.Errorf("granting the cluster its identity: %w", err)
		wait := r.paces.failed(cluster.Name, what, err)
		if !check {
			return "", 0, failed(wait, "%v", err)
		}
		// The agent works as far as is known, so the cluster stays accepted.
		ctrl.LoggerFrom(ctx).Error(err, "Could not check the identity of the cluster")
		return checkNote + kit.Message(err.Error()), wait, nil
	}
	r.paces.succeeded(cluster.Name)
	if !check {
		pinned.Granted = r.clock.Now()
	}
	pinned.Note = note
	if err := record.Patch(ctx, r.client, kept, func(kept *record.Record) { *kept = pinned }); err != nil || interval <= 0 {
		return note, 0, err
	}
	if check {
		r.paces.checked(cluster.Name, interval)
	}
	return note, r.paces.untilCheck(cluster.Name, pinned.Granted, interval), nil
}

// checkNote is the beginning of the message about a failed check.
const checkNote = "Its identity could not be checked: "

// call calls a driver, unless it has the maximum number of calls in progress.
func (r *Reconciler) call(ctx context.Context, driver driver.Driver, do func(context.Context) error) error {
	busy := r.busy[driver.Name()]
	select {
	case busy <- struct{}{}:
	case <-time.After(callPatience):
		return kit.Requeue(busyDriver + rand.N(busyDriver))
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-busy }()
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	return do(ctx)
}

// setFinalizer adds or removes the finalizer.
func (r *Reconciler) setFinalizer(ctx context.Context, cluster *clusterv1.ManagedCluster, wanted bool) error {
	change := controllerutil.RemoveFinalizer
	if wanted {
		change = controllerutil.AddFinalizer
	}
	_, err := kit.Patch(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) { change(c, registration.Finalizer) })
	return err
}

// autoApprove accepts a cluster that its driver approves, once: a cluster that is denied later stays denied.
func (r *Reconciler) autoApprove(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if _, done := cluster.Annotations[registration.AnnotationAutoAccepted]; done || registration.CheckName(cluster.Name) != nil {
		return nil
	}
	by, err := r.Drivers.For(cluster)
	if err != nil {
		return nil // an admin may know better
	}
	if !by.AutoApproves(cluster) {
		if explainer, ok := by.(driver.Explainer); ok {
			if why := explainer.WhyNot(cluster); why != "" {
				r.notApproved(cluster, why)
			}
		}
		return nil
	}
	if ok, err := r.undisputed(ctx, cluster); err != nil || !ok {
		return err
	}
	_, err = kit.Patch(ctx, r.client, cluster, func(c *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, registration.AnnotationAutoAccepted, r.clock.Now().UTC().Format(time.RFC3339))
		c.Spec.HubAcceptsClient = true
	})
	if err != nil {
		return fmt.Errorf("accepting the cluster: %w", err)
	}
	r.event(cluster, corev1.EventTypeNormal, "ManagedClusterAutoApproved",
		fmt.Sprintf("The cluster %s is accepted by the registration driver %q", cluster.Name, by.Name()))
	return nil
}
