// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// pass is one reconciliation of one Klusterlet, with the state that its steps observed.
type pass struct {
	*Reconciler
	// klusterlet is the Klusterlet as it was read or written last.
	klusterlet *operatorv1.Klusterlet
	report     *report
	// reports means that the report is written to the status.
	reports bool
	// next is the time until the next reconcile, or 0.
	next time.Duration

	plan *plan.Plan
	// management is the cluster that runs the pods, and managed the managed cluster, if it is another one and connected.
	management, managed *cluster
	secrets             agentSecrets
	source              *mint.Source
	connection          *connection
	// unrenewed is the error of kubeconfigs that can be used but not renewed.
	unrenewed error

	// existing has the objects that may exist if the Klusterlet is deleted, in the order of deletion, and managedExisting those of the managed cluster.
	existing, managedExisting []*unstructured.Unstructured
}

func (r *Reconciler) newPass(k *operatorv1.Klusterlet) *pass {
	record := func(id apply.ID, o metav1.Object) { r.observations.record(k.Name, id, o) }
	return &pass{Reconciler: r, klusterlet: k, report: newReport(k), management: &cluster{
		client: recordingClient{r.client, record}, pods: k.AgentNamespace(),
		owner: ownerOf(k, r.managementUID), mark: markOf(k.Name, k.UID, r.managementUID),
	}}
}

// requeueAfter schedules the next reconcile, unless an earlier one is scheduled.
func (p *pass) requeueAfter(after time.Duration) {
	after = max(after, time.Second)
	if p.next == 0 || after < p.next {
		p.next = after
	}
}

// track sets for which objects on the cluster that runs the pods changes are relevant, besides the Klusterlet itself, which was just read. A
// Klusterlet without objects there has no Secrets either: it is rejected, and the Secrets may belong to another one.
func (p *pass) track(objects []*unstructured.Unstructured) {
	name, namespace := p.klusterlet.Name, p.klusterlet.AgentNamespace()
	ids := []apply.ID{klusterletID(name)}
	for _, secret := range plan.SecretNames {
		if len(objects) == 0 {
			break
		}
		ids = append(ids, apply.ID{GroupKind: plan.Secrets.GroupKind(), NamespacedName: types.NamespacedName{Namespace: namespace, Name: secret}})
	}
	p.observations.track(name, p.management.mark.key, append(ids, idsOf(objects)...))
	p.recordKlusterlet()
}

// recordKlusterlet records the Klusterlet as it was read or written last, so that the events of it cause no reconcile.
func (p *pass) recordKlusterlet() {
	p.observations.record(p.klusterlet.Name, klusterletID(p.klusterlet.Name), p.klusterlet)
}

// inventory returns the objects that may exist, in the order of deletion.
func (p *pass) inventory() []*unstructured.Unstructured {
	resources := slices.Clone(p.klusterlet.Status.RelatedResources)
	if desired, err := plan.New(p.klusterlet, p.image); err == nil { // otherwise nothing more was ever created
		for _, resource := range desired.Inventory() {
			if !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return plan.ObjectsOf(resources)
}

func (p *pass) addFinalizer(ctx context.Context) error {
	return p.setFinalizer(ctx, operatorv1.KlusterletFinalizer, true)
}

func (p *pass) addHostedFinalizer(ctx context.Context) error {
	return p.setFinalizer(ctx, operatorv1.KlusterletHostedFinalizer, true)
}

func (p *pass) removeHostedFinalizer(ctx context.Context) error {
	return p.setFinalizer(ctx, operatorv1.KlusterletHostedFinalizer, false)
}

func (p *pass) removeFinalizer(ctx context.Context) error {
	p.connections.Close(p.klusterlet.Name)
	return p.setFinalizer(ctx, operatorv1.KlusterletFinalizer, false)
}

// setFinalizer adds or removes a finalizer.
func (p *pass) setFinalizer(ctx context.Context, name string, has bool) error {
	_, err := kit.Patch(ctx, p.client, p.klusterlet, func(k *operatorv1.Klusterlet) {
		if has {
			controllerutil.AddFinalizer(k, name)
		} else {
			controllerutil.RemoveFinalizer(k, name)
		}
	})
	return requeueStale(err)
}

// recordInventory adds the desired objects to the inventory in the status. From then on the report is written.
func (p *pass) recordInventory(ctx context.Context) error {
	_, err := kit.PatchStatus(ctx, p.client, p.klusterlet, func(k *operatorv1.Klusterlet) {
		for _, resource := range p.plan.Inventory() {
			if !slices.Contains(k.Status.RelatedResources, resource) {
				k.Status.RelatedResources = append(k.Status.RelatedResources, resource)
			}
		}
	})
	p.reports = err == nil
	return requeueStale(err)
}

// writeStatus writes the report to the status, and records events of its changes.
func (p *pass) writeStatus(ctx context.Context) error {
	before := p.klusterlet.DeepCopy()
	changed, err := kit.PatchStatus(ctx, p.client, p.klusterlet, p.report.into)
	if changed && err == nil {
		conditionevents.RecordAll(p.recorder, p.klusterlet, before.Status.Conditions, p.klusterlet.Status.Conditions, "Reconcile")
	}
	return requeueStale(err)
}

// requeueStale returns an Outcome that is not reported if the Klusterlet has changed after it was read, and the error otherwise.
func requeueStale(err error) error {
	if kit.IsStale(err) {
		return kit.Requeue(time.Second)
	}
	return err
}
