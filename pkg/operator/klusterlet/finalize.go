// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/leave"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
)

const (
	// givenUpAfter is the time after which the controller gives up on a managed cluster that cannot be cleaned.
	givenUpAfter = 5 * time.Minute
	// finalizeInterval is the interval between retries until then, and between checks of a condition that no watch reports. For the time young after the
	// deletion the interval is finalizeSoon: most deletions take no longer.
	finalizeInterval = 10 * time.Second
	finalizeSoon     = time.Second
	young            = 30 * time.Second

	reasonCleaning    = "KlusterletCleaningUp"      // what was created on the managed cluster is being deleted
	reasonUnreachable = "ManagedClusterUnreachable" // the managed cluster does not respond, so what was created there still exists
	reasonGivenUp     = "ManagedClusterGivenUp"     // what was created on the managed cluster stays there, as the Klusterlet asks for
)

// waitsFor returns the Outcome of a deletion that is in progress.
func waitsFor(format string, args ...any) error {
	return kit.Outcomef(reasonCleaning, "waits for "+format, args...)
}

// trackExisting tracks the objects that may exist.
func (p *pass) trackExisting(context.Context) error {
	p.existing = p.inventory()
	p.track(p.existing)
	return nil
}

// deletePods deletes the Deployments, in the foreground: a Deployment exists until its pods are gone.
func (p *pass) deletePods(ctx context.Context) error {
	left, err := p.management.remove(ctx, podsOf(p.existing), metav1.DeletePropagationForeground)
	if err == nil && len(left) > 0 {
		err = waitsFor("the deletion of the pods of %s", left[0])
	}
	return err
}

func podsOf(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != plan.Deployments.Kind })
}

// finalizeManaged finalizes a managed cluster that does not run the pods. After a while it gives up on a cluster that cannot be cleaned up.
func (p *pass) finalizeManaged(ctx context.Context) error {
	if err := p.loadSecrets(ctx); err != nil {
		return err // not an error of the managed cluster
	}
	err := p.runManagedFinalizers(ctx)
	if apierrors.IsConflict(err) { // the cluster responded
		err = waitsFor("other clients that write the objects to delete on the managed cluster: %v", err)
	}
	var out *kit.Outcome
	if err == nil || errors.As(err, &out) {
		return errors.Join(requeueStale(leave.Over(ctx, p.client, p.klusterlet)), err)
	}
	now := p.clock.Now()
	until, markErr := leave.Until(ctx, p.client, p.klusterlet, now, givenUpAfter)
	if markErr != nil {
		return requeueStale(markErr)
	}
	if now.Before(until) {
		return &kit.Outcome{Reason: reasonUnreachable, RequeueAfter: until.Sub(now), Message: fmt.Sprintf(
			"the managed cluster cannot be cleaned up; the operator gives up at %s: %v", until.UTC().Format(time.RFC3339), err)}
	}
	leave.RecordGivingUp(p.recorder, p.klusterlet, reasonGivenUp, "managed cluster", givenUpAfter, err, operatorv1.LabelKlusterlet)
	return nil
}

func (p *pass) runManagedFinalizers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
	defer cancel()
	_, err := p.run(ctx, managedFinalizers)
	return err
}

func (p *pass) checkSource(context.Context) (err error) {
	p.source, err = p.secrets.source()
	if err != nil {
		p.connections.Close(p.klusterlet.Name)
	}
	return err
}

// selectManaged selects the objects to delete on the managed cluster.
func (p *pass) selectManaged(ctx context.Context) error {
	p.connection.settled.Store(nil)
	same, err := p.connection.isCluster(ctx, p.managementUID)
	if err != nil {
		return err
	}
	p.managedExisting = p.existing
	if same {
		// The namespace has the source. It is deleted last, with the rest of this cluster: without the source, the next process could not continue.
		namespace := p.klusterlet.AgentNamespace()
		p.managedExisting = slices.DeleteFunc(slices.Clone(p.existing), func(o *unstructured.Unstructured) bool {
			return o.GetKind() == plan.Namespaces.Kind && o.GetName() == namespace
		})
	}
	return nil
}

func (p *pass) deleteManagedOwned(ctx context.Context) error {
	owned, _ := splitShared(p.managedExisting)
	return p.managed.finalize(ctx, slices.DeleteFunc(owned, func(o *unstructured.Unstructured) bool {
		return !plan.IsOnManaged(apply.Mapping{GroupVersionKind: o.GroupVersionKind()})
	}))
}

func (p *pass) finalizeManagedWorks(ctx context.Context) error {
	return worksFinalizer{pass: p, cluster: p.managed, connection: p.connection}.run(ctx)
}

func (p *pass) releaseManagedShared(ctx context.Context) error {
	_, shared := splitShared(p.managedExisting)
	return p.managed.finalize(ctx, shared)
}

func (p *pass) finalizeWorks(ctx context.Context) error {
	return worksFinalizer{pass: p, cluster: p.management}.run(ctx)
}

func (p *pass) deleteOwned(ctx context.Context) error {
	owned, _ := splitShared(p.existing)
	return p.management.finalize(ctx, owned)
}

func (p *pass) releaseShared(ctx context.Context) error {
	_, shared := splitShared(p.existing)
	return p.management.finalize(ctx, shared)
}

// deleteSecrets deletes minted Secrets, and the identity on the hub. The user's Secrets are only deleted with the namespace.
func (p *pass) deleteSecrets(ctx context.Context) error {
	names := []string{operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork, operatorv1.ExternalManagedKubeconfigAgent}
	// A copy of a Klusterlet has its finalizers, and may have its namespace. It was rejected, so the identity in the namespace is not its own.
	var rejected *rejection
	if err := p.checkNamespace(ctx); err == nil {
		names = append(names, operatorv1.HubKubeconfigSecret)
	} else if !errors.As(err, &rejected) {
		return err
	}
	for _, name := range names {
		if err := p.deleteSecret(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) deleteSecret(ctx context.Context, name string) error {
	key := types.NamespacedName{Namespace: p.klusterlet.AgentNamespace(), Name: name}
	secret := &corev1.Secret{}
	if err := p.client.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if name != operatorv1.HubKubeconfigSecret && !p.management.owner.Owns(secret) {
		return nil
	}
	p.minter.Forget(key)
	return client.IgnoreNotFound(p.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
}

// splitShared splits objects into those that belong to the Klusterlet alone and those that are shared.
func splitShared(objects []*unstructured.Unstructured) (owned, shared []*unstructured.Unstructured) {
	for _, o := range objects {
		if plan.IsShared(o) {
			shared = append(shared, o)
		} else {
			owned = append(owned, o)
		}
	}
	return owned, shared
}
