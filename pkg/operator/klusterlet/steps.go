// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// step is a step of a pass. It can be repeated, since the process may end at any point, and writes nothing that is already as desired.
type step struct {
	name string
	run  func(*pass, context.Context) error
	// when reports whether a Klusterlet needs the step.
	when func(*pass) bool
	// reason is the reason of the condition Applied if the step fails, unless its error is a kit.Outcome, which has its own. Without a reason the
	// error is retried and not reported.
	reason string
}

// steps apply a Klusterlet, in this order.
var steps = []step{
	{"make the plan", (*pass).makePlan, always, ""},
	{"check the namespace of the pods", (*pass).checkNamespace, always, ""},
	{"track the desired objects", (*pass).trackDesired, always, ""},
	{"add the finalizer", (*pass).addFinalizer, always, ""},
	// Before the objects: those that are no longer desired can be pruned, whenever this process ends.
	{"record the inventory", (*pass).recordInventory, always, ""},
	// Before the Secrets, which the user creates in it.
	{"apply the namespace of the pods", (*pass).applyNamespace, always, ""},
	{"read the Secrets", (*pass).readSecrets, always, ""},
	{"check the Secrets", (*pass).checkSecrets, isDetached, operatorv1.ReasonKlusterletPrepareFailed},
	{"connect to the managed cluster", (*pass).connect, isDetached, operatorv1.ReasonManagedClusterResourceApplyFailed},
	{"identify the managed cluster", (*pass).identify, isDetached, operatorv1.ReasonManagedClusterResourceApplyFailed},
	{"add the finalizer of the managed cluster", (*pass).addHostedFinalizer, isDetached, ""},
	{"apply the objects on the managed cluster", (*pass).applyManaged, isDetached, operatorv1.ReasonManagedClusterResourceApplyFailed},
	{"apply the objects on the cluster of the pods", (*pass).applyManagement, always, operatorv1.ReasonManagementClusterResourceApplyFailed},
	{"mint the kubeconfigs of the pods", (*pass).mint, isDetached, operatorv1.ReasonManagedClusterResourceApplyFailed},
	{"apply the pods", (*pass).applyPods, always, operatorv1.ReasonManagementClusterResourceApplyFailed},
	{"prune", (*pass).prune, always, operatorv1.ReasonKlusterletApplyFailed},
	{"report that all objects are applied", (*pass).reportApplied, always, ""},
	{"observe the pods", (*pass).observePods, always, ""},
}

// finalizers finalize a Klusterlet, in this order: the pods are deleted first, since they would recreate what is deleted, then the objects on the
// managed cluster, then the rest, with the namespace at the end. Each step starts from the current state.
var finalizers = []step{
	{"track the existing objects", (*pass).trackExisting, always, ""},
	{"delete the pods", (*pass).deletePods, always, operatorv1.ReasonKlusterletApplyFailed},
	{"finalize the managed cluster", (*pass).finalizeManaged, isHosted, operatorv1.ReasonKlusterletApplyFailed},
	{"remove the finalizer of the managed cluster", (*pass).removeHostedFinalizer, always, operatorv1.ReasonKlusterletApplyFailed},
	// With the rights of the agent, which are deleted after them.
	{"finalize the works", (*pass).finalizeWorks, isAttached, operatorv1.ReasonKlusterletApplyFailed},
	{"delete the objects", (*pass).deleteOwned, always, operatorv1.ReasonKlusterletApplyFailed},
	{"delete the Secrets", (*pass).deleteSecrets, always, operatorv1.ReasonKlusterletApplyFailed},
	{"release the shared objects", (*pass).releaseShared, always, operatorv1.ReasonKlusterletApplyFailed},
	{"remove the finalizer", (*pass).removeFinalizer, always, ""},
}

// managedFinalizers are the steps of finalizeManaged: they delete the objects on a managed cluster that does not run the pods, as its admin.
var managedFinalizers = []step{
	{"check the source", (*pass).checkSource, always, ""},
	{"connect to the managed cluster", (*pass).connect, always, ""},
	{"select the objects on the managed cluster", (*pass).selectManaged, always, ""},
	// Rights are deleted first, so that a pod that could not be deleted has none.
	{"delete the objects on the managed cluster", (*pass).deleteManagedOwned, always, ""},
	{"finalize the works on the managed cluster", (*pass).finalizeManagedWorks, always, ""},
	{"release the shared objects on the managed cluster", (*pass).releaseManagedShared, always, ""},
}

func always(*pass) bool { return true }

// isDetached reports whether the pods run on another cluster than the managed one, and isAttached the opposite.
func isDetached(p *pass) bool { return p.klusterlet.IsDetached() }

func isAttached(p *pass) bool { return !isDetached(p) }

// isHosted reports whether a managed cluster that does not run the pods may have objects of the Klusterlet.
func isHosted(p *pass) bool {
	return controllerutil.ContainsFinalizer(p.klusterlet, operatorv1.KlusterletHostedFinalizer)
}

func (p *pass) isDeleted() bool { return p.klusterlet.DeletionTimestamp != nil }

// steps returns the steps that the Klusterlet needs. A deleted one without finalizers needs none.
func (p *pass) steps() []step {
	switch {
	case !p.isDeleted():
		return steps
	case isHosted(p), controllerutil.ContainsFinalizer(p.klusterlet, operatorv1.KlusterletFinalizer):
		return finalizers
	}
	return nil
}

// run runs steps in order, and stops at the first that fails. reason is empty if the error is not reported.
func (p *pass) run(ctx context.Context, steps []step) (reason string, err error) {
	for _, s := range steps {
		if !s.when(p) {
			continue
		}
		if err := s.run(p, ctx); err != nil {
			ctrl.LoggerFrom(ctx).V(4).Info("A step ended the reconciliation", "step", s.name)
			var out *kit.Outcome
			if errors.As(err, &out) {
				return out.Reason, err
			}
			return s.reason, err
		}
	}
	return "", nil
}

// reconcile runs the steps, writes the result to the status, and returns when to reconcile again.
func (p *pass) reconcile(ctx context.Context) (reconcile.Result, error) {
	reason, err := p.run(ctx, p.steps())
	var rejected *rejection
	switch {
	case errors.As(err, &rejected):
		err = p.reject(ctx, rejected)
	case reason == "":
	case p.isDeleted():
		p.reportDeletion(ctx, reason, err)
		err = nil
	default:
		err = p.reportFailure(ctx, reason, err)
	}
	if p.reports {
		if writeErr := p.writeStatus(ctx); writeErr != nil {
			p.next, err = 0, writeErr
		}
	}
	var out *kit.Outcome
	if errors.As(err, &out) {
		return reconcile.Result{RequeueAfter: out.RequeueAfter}, nil
	}
	return reconcile.Result{RequeueAfter: p.next}, err
}

// reportFailure reports the error of a step. It returns the error to retry, which an Outcome need not have.
func (p *pass) reportFailure(ctx context.Context, reason string, err error) error {
	p.report.failed(reason, err)
	var out *kit.Outcome
	if errors.As(err, &out) {
		err = out.Err
	}
	return errors.Join(err, p.observePods(ctx))
}

// reportDeletion reports why a Klusterlet that is being deleted still exists. Errors are retried at the same interval: they may be about the last
// object to wait for, and no watch reports when they end.
func (p *pass) reportDeletion(ctx context.Context, reason string, err error) {
	p.next = finalizeInterval
	if p.clock.Since(p.klusterlet.DeletionTimestamp.Time) < young {
		p.next = finalizeSoon
	}
	var out *kit.Outcome
	switch {
	case errors.As(err, &out):
		if out.RequeueAfter > 0 {
			p.next = max(time.Second, min(p.next, out.RequeueAfter))
		}
	case !apierrors.IsConflict(err):
		ctrl.LoggerFrom(ctx).Error(err, "The Klusterlet is being deleted, and some objects cannot be deleted yet")
	}
	p.report.applied(reason, err)
	p.report.unavailable(reason, "the Klusterlet is being deleted: "+err.Error())
	p.reports = true
}

// reject reports why there can be no agent of the Klusterlet. If the namespace has another agent, both may have run for a while because they were
// created at the same time: the pods of this one are deleted, because they would have the secrets of the other one.
func (p *pass) reject(ctx context.Context, why *rejection) error {
	p.reports = false
	p.track(nil)
	p.connections.Close(p.klusterlet.Name)
	if why.isTaken {
		if _, err := p.management.remove(ctx, podsOf(p.inventory()), metav1.DeletePropagationForeground); err != nil {
			return err
		}
	}
	p.report.applied(operatorv1.ReasonKlusterletApplyFailed, why)
	p.report.unavailable(operatorv1.ReasonKlusterletNoAvailablePods, "the Klusterlet has to be changed: "+why.Error())
	p.reports = true
	// No watch reports when another agent is gone.
	p.next = time.Minute
	return nil
}
