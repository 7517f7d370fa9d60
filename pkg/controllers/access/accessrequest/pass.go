// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// pass is one reconciliation of one AccessRequest, with what was read for it.
type pass struct {
	*Reconciler
	access *v1alpha1.AccessRequest

	// clusterKey is the name of the Cluster, and grantedBy the ClusterRequest that names it, or nil.
	clusterKey client.ObjectKey
	cluster    *v1alpha1.Cluster
	grantedBy  *v1alpha1.ClusterRequest
	// labels are the labels that the request needs, and empty if it has all.
	labels []label
	result reconcile.Result
}

// errDone ends a reconciliation that has nothing more to do.
var errDone = errors.New("nothing more to do")

// steps returns the steps of a reconciliation.
//
// A provider acts on a request that is Pending and has its labels. So the Cluster is protected first, then the status is written, then the labels,
// each by a write of its own. After any of them the next try does the rest, and no provider acts too early. If others have set the labels, the
// status comes last, and hands the request over.
func (p *pass) steps() []kit.Step {
	return []kit.Step{
		{Name: "skip requests that are not selected", Do: p.checkSelected},
		{Name: "delete the request after its ttl", Do: p.expire},
		{Name: "delete the request after its ClusterRequest", Do: p.deleteLapsed},
		{Name: "skip requests that a provider has", Do: p.checkProvider},
		{Name: "remove the annotation that requests a reconciliation", Do: p.acknowledge},
		{Name: "report the phase of requests that are denied or being deleted", Do: p.reportEnded},
		{Name: "find the Cluster", Do: p.findCluster},
		{Name: "check the policy", Do: p.checkPolicy},
		{Name: "find the provider", Do: p.findProvider},
		{Name: "mark the ClusterRequest", Do: p.markGranted},
		{Name: "set the Cluster", Do: p.setCluster},
		{Name: "protect the Cluster", Do: p.protect},
		{Name: "report that the request is prepared", Do: p.reportPrepared},
		{Name: "set the labels", Do: p.setLabels},
	}
}

// reconcile runs the steps, and writes to the status what the request waits for.
func (p *pass) reconcile(ctx context.Context) (reconcile.Result, error) {
	err := kit.RunSteps(ctx, p.steps())
	var why *kit.Outcome
	switch {
	case errors.Is(err, errDone):
		return p.result, nil
	case errors.As(err, &why):
		condition := &metav1.Condition{Status: metav1.ConditionFalse, Reason: why.Reason, Message: why.Message}
		err = errors.Join(p.report(ctx, phaseOf(why, p.access), condition), why.Err)
	}
	return p.result, kit.IgnoreStale(err)
}

// checkSelected ends the reconciliation of requests that another program prepares.
func (p *pass) checkSelected(context.Context) error {
	// A change of the labels does not prevent the deletion of a request that was prepared.
	begun := meta.FindStatusCondition(p.access.Status.Conditions, v1alpha1.ConditionPrepared) != nil || markOf(p.access) != ""
	if p.operation() == v1alpha1.OperationAnnotationValueIgnore || !p.isSelected() && !begun {
		return errDone
	}
	return nil
}

// operation returns what a user requests by an annotation.
func (p *pass) operation() string { return p.access.Annotations[v1alpha1.OperationAnnotation] }

func (p *pass) isSelected() bool { return p.selector.Matches(labels.Set(p.access.Labels)) }

// expire deletes a request whose time is over, and otherwise requests a reconciliation at that time.
func (p *pass) expire(ctx context.Context) error {
	ttl := p.access.Spec.TTL
	if ttl == nil || !p.access.DeletionTimestamp.IsZero() {
		return nil
	}
	remaining := p.access.CreationTimestamp.Add(ttl.Duration).Sub(p.clock.Now())
	if remaining <= 0 {
		// The deletion fails if a user extends the time concurrently.
		return p.delete(ctx, fmt.Sprintf("its ttl has expired, %s after its creation", ttl.Duration))
	}
	// Creation times are truncated to seconds.
	p.result.RequeueAfter = remaining + time.Second
	return nil
}

// delete deletes a request that is still as it was read, reports why, and ends the reconciliation.
func (p *pass) delete(ctx context.Context, why string) error {
	if err := p.client.Delete(ctx, p.access, kit.AsRead(p.access)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("The access ends", "reason", why)
	conditionevents.Note(p.recorder, p.access, corev1.EventTypeNormal, reasonEnded, actionEnd, "The access ends: "+why)
	return errDone
}

// checkProvider ends the reconciliation of requests that a provider has.
func (p *pass) checkProvider(context.Context) error {
	if !p.isSelected() || p.hasProvider(p.access) {
		return errDone
	}
	return nil
}

// acknowledge removes the annotation that has caused the reconciliation.
func (p *pass) acknowledge(ctx context.Context) error {
	if p.operation() != v1alpha1.OperationAnnotationValueReconcile {
		return nil
	}
	_, err := kit.Patch(ctx, p.client, p.access, func(a *v1alpha1.AccessRequest) { delete(a.Annotations, v1alpha1.OperationAnnotation) })
	return err
}

// reportEnded reports the phase of a request that is denied permanently, whatever it asks for now: by the policy, or by an approver, who may not have
// set the observed generation. If a request is being deleted, its provider revokes the access, whatever the state of the Cluster.
func (p *pass) reportEnded(ctx context.Context) error {
	phase := v1alpha1.REQUEST_PENDING
	if p.access.DeletionTimestamp.IsZero() {
		if !p.access.Status.IsDenied() {
			return nil
		}
		phase = v1alpha1.REQUEST_DENIED
	}
	if err := p.report(ctx, phase, nil); err != nil {
		return err
	}
	return errDone
}

// report sets the phase of the request, for its current generation, and a condition unless that is nil.
func (p *pass) report(ctx context.Context, phase string, condition *metav1.Condition) error {
	before := p.access.Status.Conditions
	changed, err := kit.PatchStatus(ctx, p.client, p.access, func(a *v1alpha1.AccessRequest) {
		a.Status.Phase, a.Status.ObservedGeneration = phase, a.Generation
		if condition != nil {
			condition.Type, condition.ObservedGeneration = v1alpha1.ConditionPrepared, a.Generation
			meta.SetStatusCondition(&a.Status.Conditions, *condition)
		}
	})
	if err != nil || !changed {
		return err
	}
	conditionevents.Record(p.recorder, p.access, before, p.access.Status.Conditions, v1alpha1.ConditionPrepared, actionPrepare)
	return nil
}
