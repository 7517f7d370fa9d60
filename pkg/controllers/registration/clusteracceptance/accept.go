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
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// accept gives an accepted cluster what it needs. Each step finds out by itself whether it has been done.
func (r *Reconciler) accept(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	role, pinned, err := r.pin(ctx, cluster)
	if err != nil {
		return err
	}
	// From here on there is something to clean up.
	if err := r.setFinalizer(ctx, cluster, true); err != nil {
		return err
	}
	if err := r.ensureNamespace(ctx, cluster.Name); err != nil {
		return err
	}
	if role, err = r.ensureRole(ctx, cluster.Name, role, pinned); err != nil {
		return err
	}
	if err := r.ensureBindings(ctx, cluster); err != nil {
		return err
	}
	note, next, err := r.grant(ctx, cluster, role)
	if err != nil {
		return err
	}
	message := registration.MessageAccepted
	for _, note := range []string{note, r.changed(cluster, pinned)} {
		if note != "" {
			message += ". " + note
		}
	}
	if err := r.condition(ctx, cluster, metav1.ConditionTrue, registration.ReasonAccepted, message); err != nil {
		return err
	}
	if next > 0 {
		return later{after: next}
	}
	return nil
}

// pin returns what the cluster is accepted with: what its ClusterRole says, or, the first time, what its driver plans.
// What is left of an earlier acceptance is revoked before.
func (r *Reconciler) pin(ctx context.Context, cluster *clusterv1.ManagedCluster) (*rbacv1.ClusterRole, record, error) {
	role := clusterRole(cluster.Name)
	err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role)
	if kit.IsGone(err) {
		role, err = nil, nil
	}
	if err != nil {
		return nil, record{}, err
	}
	pinned := recordOf(role)
	if role != nil && (pinned.granted.IsZero() || pinned.uid != cluster.UID || pinned.revoking) {
		// A driver is going to be called, for which the cache may be too old.
		if role, err = r.liveRole(ctx, cluster.Name); err != nil {
			return nil, record{}, err
		}
		pinned = recordOf(role)
	}
	if pinned.driver != "" && (pinned.revoking || pinned.uid != cluster.UID) {
		// It was denied, or is another cluster's. Only when all of that is gone, it may have something new.
		if role, err = r.reduce(ctx, role, deniedRules(cluster.Name)); err != nil {
			return nil, record{}, err
		}
		if role, err = r.revoke(ctx, cluster.Name, role); err != nil {
			return nil, record{}, err
		}
		pinned = recordOf(role)
	}
	if pinned.driver != "" {
		return role, pinned, nil
	}
	planned, err := r.plan(cluster)
	if err != nil {
		return nil, record{}, failure{error: err}
	}
	if pinned.key != "" && pinned.uid == cluster.UID {
		if pinned.named == "" || pinned.named == planned.named {
			planned.key, planned.since = pinned.key, pinned.since
		} else {
			// To accept it again means another key. What was approved before is of the agent that had the old one.
			planned.since = r.clock.Now().UTC().Format(time.RFC3339)
		}
	}
	return role, planned, r.unheld(ctx, cluster, planned)
}

// plan says what the cluster would be accepted with now.
func (r *Reconciler) plan(cluster *clusterv1.ManagedCluster) (record, error) {
	if err := registration.CheckName(cluster.Name); err != nil {
		return record{}, err
	}
	driver, err := r.Drivers.For(cluster)
	if err != nil {
		return record{}, err
	}
	if _, err := registration.Requesters(cluster.Annotations); err != nil {
		return record{}, err
	}
	planned, err := driver.Plan(cluster)
	key := agentcsr.PlannedKey(cluster.Annotations)
	return record{
		driver: driver.Name(), record: planned, uid: cluster.UID, key: key, named: cmp.Or(key, registration.NoKey),
		requesters: cluster.Annotations[registration.AnnotationRequesters],
	}, err
}

// changed says so when the cluster would be accepted with something else by now.
func (r *Reconciler) changed(cluster *clusterv1.ManagedCluster, pinned record) string {
	planned, err := r.plan(cluster)
	if err == nil && planned.sameIdentity(pinned) {
		return ""
	}
	return "The cluster would be accepted with another identity by now, and keeps the one that it was accepted with: to change " +
		"that, deny it, wait until it is denied, and accept it again"
}

// ensureRole makes the cluster's ClusterRole, and with it the record, before anything of the record is granted.
func (r *Reconciler) ensureRole(ctx context.Context, cluster string, role *rbacv1.ClusterRole, pinned record) (*rbacv1.ClusterRole, error) {
	if role == nil {
		role = clusterRole(cluster)
		role.Rules = r.acceptedRules(cluster)
		pinned.write(role)
		err := r.client.Create(ctx, role)
		if !apierrors.IsAlreadyExists(err) {
			return role, err
		}
		if role, err = r.liveRole(ctx, cluster); err != nil || role == nil {
			return nil, errors.Join(err, later{after: kit.FirstBackoff})
		}
		if recordOf(role).driver != "" {
			// It is ours, and the cache was too old. Without its label it would be so for ever.
			pinned = recordOf(role)
		}
	}
	return r.patchRole(ctx, role, func(role *rbacv1.ClusterRole) {
		role.Rules = r.acceptedRules(cluster)
		pinned.write(role)
	})
}

// patchRole changes a ClusterRole, if there is anything to change. It fails if the ClusterRole has changed since it was
// read.
func (r *Reconciler) patchRole(ctx context.Context, role *rbacv1.ClusterRole, change func(*rbacv1.ClusterRole)) (*rbacv1.ClusterRole, error) {
	_, err := kit.Patch(ctx, r.client, role, func(role *rbacv1.ClusterRole) {
		metav1.SetMetaDataLabel(&role.ObjectMeta, registration.ClusterNameLabel, clusterNameOf(role))
		// Another one's, by which others would write the rules. The hub's own policy lets no role pass that has one.
		role.AggregationRule = nil
		change(role)
	})
	return role, err
}

// liveRole is the cluster's ClusterRole as it is, nil when there is none.
func (r *Reconciler) liveRole(ctx context.Context, cluster string) (*rbacv1.ClusterRole, error) {
	role := clusterRole(cluster)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role)
	if kit.IsGone(err) {
		return nil, nil
	}
	return role, err
}

// grant calls the driver where that has not been done, and where it is time to check. It returns what is to be said about
// it, and when the next check is.
func (r *Reconciler) grant(ctx context.Context, cluster *clusterv1.ManagedCluster, role *rbacv1.ClusterRole) (
	note string, next time.Duration, err error) {
	pinned := recordOf(role)
	by := r.Drivers.Named(pinned.driver)
	if by == nil {
		if pinned.granted.IsZero() {
			return "", 0, failure{error: notEnabled(pinned.driver)}
		}
		return fmt.Sprintf("The registration driver %q, which accepted it, is not enabled any more, so its identity is not "+
			"checked: add the driver to --registration-drivers", pinned.driver), 0, nil
	}
	interval := by.CheckInterval()
	check := !pinned.granted.IsZero()
	if check {
		if interval <= 0 {
			return pinned.note, 0, nil
		}
		if next := r.paces.untilCheck(cluster.Name, pinned.granted, interval); next > 0 {
			return pinned.note, next, nil
		}
	}
	const what = "grant"
	if wait, last := r.paces.wait(cluster.Name, what); wait > 0 {
		if check {
			return checkNote + kit.Message(last.Error()), wait, nil
		}
		return "", 0, later{wait, last}
	}
	err = r.call(ctx, by, func(ctx context.Context) error { return by.Grant(ctx, cluster.Name, pinned.record) })
	if isLater(err) {
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
			return "", 0, failure{err, wait}
		}
		// As far as is known its agent works, so it stays accepted.
		ctrl.LoggerFrom(ctx).Error(err, "Could not check the identity of the cluster")
		return checkNote + kit.Message(err.Error()), wait, nil
	}
	r.paces.succeeded(cluster.Name)
	if !check {
		pinned.granted = r.clock.Now()
	}
	pinned.note = note
	if _, err := r.patchRole(ctx, role, pinned.write); err != nil || interval <= 0 {
		return note, 0, err
	}
	if check {
		r.paces.checked(cluster.Name, interval)
	}
	return note, r.paces.untilCheck(cluster.Name, pinned.granted, interval), nil
}

// checkNote begins what is said of a check that has failed.
const checkNote = "Its identity could not be checked: "

// call calls a driver, unless it is as busy as it may be.
func (r *Reconciler) call(ctx context.Context, driver driver.Driver, do func(context.Context) error) error {
	busy := r.busy[driver.Name()]
	select {
	case busy <- struct{}{}:
	case <-time.After(callPatience):
		return later{after: busyDriver + rand.N(busyDriver)}
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

// autoApprove accepts a cluster that its driver lets in, once: who is denied later stays so.
func (r *Reconciler) autoApprove(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if _, done := cluster.Annotations[registration.AnnotationAutoAccepted]; done || registration.CheckName(cluster.Name) != nil {
		return nil
	}
	by, err := r.Drivers.For(cluster)
	if err != nil {
		return nil // an admin may see more in it
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
