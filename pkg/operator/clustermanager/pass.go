// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
)

// pass is one reconcile of a ClusterManager, with what it observed.
type pass struct {
	*reconciler
	cm *operatorv1.ClusterManager

	plan *plan
	// hub and management are the same side in mode Default.
	hub, management *side
	hubHas, has     []*unstructured.Unstructured
	// source and connection are of a detached hub.
	source     *mint.Source
	connection *connection

	// unready, failed and reason are for the conditions ReadyToApply and Applied.
	unready error
	failed  error
	reason  string
	// pods are the observed Deployments, and served is the observed state of the APIServices on the hub.
	pods   []*appsv1.Deployment
	served []serviceState
	// observed reports that pods and served are known.
	observed bool
	next     time.Time
}

// step is one step of a reconcile. An error ends the reconcile.
type step struct {
	name string
	// reason is the reason of the condition Applied after an error. An error of a step without a reason means that the hub is not ready.
	reason string
	do     func(context.Context) error
}

// steps returns the steps that create a hub. On a detached hub the accounts come first, then their kubeconfigs, then the pods, and the APIServices once
// a server runs: a hub with an APIService that is not served deletes no namespace.
func (p *pass) steps() []step {
	const applyFailed, syncFailed = operatorv1.ReasonRuntimeResourceApplyFailed, operatorv1.ReasonServiceAccountSyncFailed
	steps := []step{
		{"check the spec", applyFailed, p.checkSpec},
		{"read the management cluster", applyFailed, p.readManagement},
	}
	if p.cm.IsDetached() {
		steps = append(steps, []step{
			{"create the namespace of the servers", applyFailed, p.createNamespace},
			{"read the kubeconfig of the hub", "", p.readSource},
			{"connect to the hub", "", p.connect},
			{"identify the hub", "", p.identify},
			{"read the hub", "", p.readHub},
			{"plan the objects", applyFailed, p.planObjects},
			{"apply the objects of the hub", applyFailed, p.applyHub},
			{"issue the kubeconfigs of the servers", syncFailed, p.mint},
		}...)
	} else {
		steps = append(steps, []step{
			{"record the identity of the cluster", applyFailed, p.recordManagement},
			{"plan the objects", applyFailed, p.planObjects},
		}...)
	}
	return append(steps, []step{
		{"apply the objects of the management cluster", applyFailed, p.applyManagement},
		{"read the Deployments", applyFailed, p.readPods},
		{"apply the APIServices", applyFailed, p.applyServices},
		{"prune", applyFailed, p.prune},
		{"observe the APIServices", "", p.observe},
	}...)
}

// reconcile creates the hub of the ClusterManager, and writes the status.
func (p *pass) reconcile(ctx context.Context) (reconcile.Result, error) {
	if _, err := kit.Patch(ctx, p.client, p.cm, func(cm *operatorv1.ClusterManager) {
		controllerutil.AddFinalizer(cm, operatorv1.ClusterManagerFinalizer)
	}); err != nil {
		return reconcile.Result{}, kit.IgnoreStale(err)
	}
	err := p.run(ctx, p.steps())
	// Write the status even if the time for the reconcile is over.
	statusCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reach.RequestTimeout)
	defer cancel()
	if statusErr := p.report(statusCtx, p.setStatus); statusErr != nil {
		return reconcile.Result{}, kit.IgnoreStale(statusErr)
	}
	if err != nil || p.next.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(p.next.Sub(p.Clock.Now()), time.Second)}, nil
}

// run runs steps until one returns an error, which the conditions report. It returns the error if a retry with the backoff of the queue may solve it,
// and not if a user must act or an event follows.
func (p *pass) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		err := s.do(ctx)
		if err == nil {
			continue
		}
		if s.reason == "" {
			p.unready = err
		} else {
			p.reason, p.failed = s.reason, err
		}
		ctrl.LoggerFrom(ctx).V(2).Info("A step failed", "step", s.name, "reason", err.Error())
		var out *kit.Outcome
		if errors.As(err, &out) {
			return out.Err
		}
		return err
	}
	return nil
}

// requeueAt schedules the next reconcile at that time or earlier.
func (p *pass) requeueAt(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// report writes the observed state to the status, and records events of the conditions that change.
func (p *pass) report(ctx context.Context, found func(*operatorv1.ClusterManager)) error {
	before := p.cm.Status.DeepCopy()
	changed, err := kit.PatchStatus(ctx, p.client, p.cm, found)
	if changed {
		conditionevents.RecordAll(p.recorder, p.cm, before.Conditions, p.cm.Status.Conditions, "Reconcile")
	}
	return err
}

// checkSpec plans the objects while the address of the hub is not known: the rest of the spec can be checked already, and the namespace must exist for
// the user's Secret.
func (p *pass) checkSpec(context.Context) error {
	var err error
	p.plan, err = planOf(p.cm, p.images(), "unknown")
	if err != nil {
		return kit.Outcomef(operatorv1.ReasonRuntimeResourceApplyFailed, "%v", err)
	}
	return nil
}

// readManagement reads the objects of the management cluster, which is the hub in mode Default.
func (p *pass) readManagement(ctx context.Context) error {
	var err error
	p.management, err = p.managementOf(ctx, p.cm)
	if err != nil {
		return err
	}
	p.has, err = p.management.observed(ctx)
	p.hub, p.hubHas = p.management, p.has
	return err
}

// recordManagement records the identity of the management cluster, which is the hub.
func (p *pass) recordManagement(ctx context.Context) error {
	return p.recordHub(ctx, p.management.applier.Owner.Labels[klusterlet.LabelManagement])
}

// createNamespace creates the namespace of the servers, so that the user can create the Secret in it.
func (p *pass) createNamespace(ctx context.Context) error {
	for _, o := range p.plan.management {
		if !namespaces.of(o) {
			continue
		}
		if err := p.management.apply(ctx, []*unstructured.Unstructured{o}, p.has); err != nil {
			return err
		}
		current, err := p.management.applier.Get(ctx, o)
		if err != nil {
			return p.management.failed("reading the", "namespace "+o.GetName(), err)
		}
		// Deleting the Klusterlet deletes the namespace, and the servers with it.
		if current != nil && isKlusterlets(current) {
			return kit.Outcomef(operatorv1.ReasonRuntimeResourceApplyFailed, "the namespace %s belongs to the agent of a Klusterlet: delete the ClusterManager and create it with another "+
				"name, or in mode Detached, which has its own namespaces", o.GetName())
		}
	}
	return nil
}

// planObjects plans the objects with the way to the hub, if that is detached.
func (p *pass) planObjects(context.Context) error {
	way := ""
	var err error
	if p.cm.IsDetached() {
		way, err = connectionText(p.source)
	}
	if err != nil {
		return err
	}
	p.plan, err = planOf(p.cm, p.images(), way)
	return err
}

// applyHub applies the objects of a detached hub, except for its APIServices.
func (p *pass) applyHub(ctx context.Context) error { return p.hub.apply(ctx, p.plan.hub, p.hubHas) }

// applyManagement applies the objects of the management cluster.
func (p *pass) applyManagement(ctx context.Context) error {
	return p.management.apply(ctx, p.plan.management, p.has)
}

// applyServices applies the APIServices, once a server runs.
func (p *pass) applyServices(ctx context.Context) error {
	if !p.serves() {
		return nil
	}
	return p.hub.apply(ctx, p.plan.services, p.hubHas)
}

// serves reports whether APIServices must exist: from the first running server on.
func (p *pass) serves() bool {
	for _, o := range p.hubHas {
		if apiServices.of(o) {
			return true
		}
	}
	for _, d := range p.pods {
		if d.Name == deploy.APIServer && d.Status.AvailableReplicas > 0 {
			return true
		}
	}
	return false
}

// mint reconciles the kubeconfigs with which the pods reach the hub.
func (p *pass) mint(ctx context.Context) error {
	for _, account := range p.plan.accounts {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(accounts.GroupVersionKind)
		if err := p.hub.client.Get(ctx, client.ObjectKey{Namespace: account.namespace, Name: account.name}, o); err != nil {
			return p.hub.failed("reading", "ServiceAccount "+account.namespace+"/"+account.name, err)
		}
		state, err := p.minter.Ensure(ctx, mint.Desired{
			Secret: p.minted(account), Labels: p.management.applier.Owner.Labels, Source: p.source, Cluster: p.connection.cluster,
			Account: mint.Account{Namespace: account.namespace, Name: account.name, UID: o.GetUID()},
		})
		p.requeueAt(state.Next)
		if err != nil && !state.Usable {
			return kit.Outcomef(operatorv1.ReasonRuntimeResourceApplyFailed, "the kubeconfig in Secret %s: %v", p.minted(account), err)
		}
	}
	return nil
}

// minted returns the name of the Secret with the kubeconfig of an account.
func (p *pass) minted(a account) types.NamespacedName {
	return types.NamespacedName{Namespace: p.cm.ServerNamespace(), Name: deploy.KubeconfigSecret(a.name)}
}

// prune deletes what the ClusterManager no longer asks for.
func (p *pass) prune(ctx context.Context) error {
	desired := map[apply.ID]bool{}
	for _, o := range p.desired() {
		desired[apply.IDOf(o)] = true
	}
	err := p.management.prune(ctx, p.has, desired)
	if p.cm.IsDetached() {
		err = errors.Join(err, p.hub.prune(ctx, p.hubHas, desired))
	}
	return err
}

// desired returns all desired objects of both clusters.
func (p *pass) desired() (all []*unstructured.Unstructured) {
	all = append(all, p.plan.hub...)
	all = append(all, p.plan.management...)
	for _, a := range p.plan.accounts {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(secrets.GroupVersionKind)
		o.SetNamespace(p.minted(a).Namespace)
		o.SetName(p.minted(a).Name)
		all = append(all, o)
	}
	return append(all, p.plan.services...)
}

// readPods reads the Deployments.
func (p *pass) readPods(ctx context.Context) error {
	objects, err := p.management.list(ctx, deployments)
	if err != nil {
		return err
	}
	p.pods = nil
	for _, o := range objects {
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			return err
		}
		p.pods = append(p.pods, d)
	}
	return nil
}
