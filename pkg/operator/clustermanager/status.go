// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// servedInterval is the interval between two checks of a hub that does not serve yet what it reports as available.
const servedInterval = time.Second

// serviceState is the state of an APIService as the hub reports it.
type serviceState struct {
	name string
	// waits is the reason why it is not available, or empty if it is.
	waits string
}

// observe observes the applied APIServices and Deployments.
func (p *pass) observe(ctx context.Context) error {
	services, err := p.hub.list(ctx, apiServices)
	if err != nil {
		p.unready = err
		return err
	}
	there := map[string]*unstructured.Unstructured{}
	for _, o := range services {
		there[o.GetName()] = o
	}
	for _, want := range p.plan.services {
		state := serviceState{name: want.GetName(), waits: "it waits for hub-apiserver"}
		if o := there[want.GetName()]; o != nil {
			state.waits = p.unavailable(o)
		}
		p.served = append(p.served, state)
	}
	p.observed = true
	if p.waitsFor() == "" && !meta.IsStatusConditionTrue(p.cm.Status.Conditions, operatorv1.ConditionClusterManagerAvailable) {
		p.checkServed(ctx)
	}
	return nil
}

// checkServed verifies that the hub serves its APIServices, before the hub is reported as available for the first time. No watch reports when it does:
// until then, the check is repeated soon.
func (p *pass) checkServed(ctx context.Context) {
	for i, service := range p.plan.services {
		if err := p.hub.serves(ctx, service); err != nil {
			p.served[i].waits = err.Error()
			p.requeueAt(p.Clock.Now().Add(servedInterval))
			return
		}
	}
}

// unavailable returns why an APIService is not available, as the hub reports it.
func (p *pass) unavailable(o *unstructured.Unstructured) string {
	if bundle, _, _ := unstructured.NestedString(o.Object, "spec", "caBundle"); bundle == "" {
		return "it waits for hub-apiserver to fill in its CA"
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return ""
		}
		return p.hub.explain(fmt.Errorf("%v", condition["message"]))
	}
	return "the hub has not checked it yet"
}

// statusWriter writes the observed state of a pass to the status of a ClusterManager.
type statusWriter struct {
	*pass
	// cm is a copy of the pass's ClusterManager.
	cm *operatorv1.ClusterManager
}

// setStatus writes the observed state to the status.
func (p *pass) setStatus(cm *operatorv1.ClusterManager) {
	status := &cm.Status
	status.ObservedGeneration = cm.Generation
	w := statusWriter{p, cm}
	w.setReady()
	w.setSpec()
	w.setApplied()
	w.setAvailable()
	if !p.observed {
		return
	}
	w.setPods()
	status.RelatedResources = related(p.desired())
	status.Generations = nil
	for _, d := range p.pods {
		status.Generations = append(status.Generations, operatorv1.GenerationStatus{
			Group: deployments.Group, Version: deployments.Version, Resource: deployments.Resource,
			Namespace: d.Namespace, Name: d.Name, LastGeneration: d.Generation,
		})
	}
}

// set sets a condition.
func (w statusWriter) set(condition string, is bool, reason, message string) {
	setCondition(w.cm, condition, is, reason, message)
}

// setApplied sets the condition Applied.
func (w statusWriter) setApplied() {
	switch {
	case w.failed != nil:
		w.set(operatorv1.ConditionClusterManagerApplied, false, w.reason, w.failed.Error())
	case w.unready == nil:
		w.set(operatorv1.ConditionClusterManagerApplied, true, operatorv1.ReasonClusterManagerApplied, "All objects of the hub are applied")
	case meta.FindStatusCondition(w.cm.Status.Conditions, operatorv1.ConditionClusterManagerApplied) == nil:
		w.set(operatorv1.ConditionClusterManagerApplied, false, operatorv1.ReasonRuntimeResourceApplyFailed, w.unready.Error())
	}
}

// setAvailable sets the condition Available.
func (w statusWriter) setAvailable() {
	if why := w.waitsFor(); why != "" {
		w.set(operatorv1.ConditionClusterManagerAvailable, false, operatorv1.ReasonClusterManagerUnavailable, why)
	} else {
		w.set(operatorv1.ConditionClusterManagerAvailable, true, operatorv1.ReasonClusterManagerAvailable, "The hub serves its API")
	}
}

// setReady sets the condition ReadyToApply.
func (w statusWriter) setReady() {
	switch {
	case !w.cm.IsDetached():
		meta.RemoveStatusCondition(&w.cm.Status.Conditions, operatorv1.ConditionReadyToApply)
	case w.unready != nil:
		w.set(operatorv1.ConditionReadyToApply, false, operatorv1.ReasonClusterManagerPrepareFailed, w.unready.Error())
	case w.source != nil:
		w.set(operatorv1.ConditionReadyToApply, true, operatorv1.ReasonClusterManagerPrepared,
			"Secret "+operatorv1.ExternalHubKubeconfig+" leads to the hub")
	}
}

// setSpec sets the conditions that depend on the spec alone.
func (w statusWriter) setSpec() {
	if unknown := unknownGates(w.cm); len(unknown) > 0 {
		w.set(operatorv1.ConditionValidFeatureGates, false, operatorv1.ReasonInvalidFeatureGatesExisting,
			fmt.Sprintf("There are no feature gates %s: there are %s", shortened(unknown), strings.Join(knownGates, ", ")))
	} else {
		w.set(operatorv1.ConditionValidFeatureGates, true, operatorv1.ReasonFeatureGatesAllValid, "All feature gates are known")
	}
	if fields := ignored(w.cm); len(fields) > 0 {
		w.set(operatorv1.ConditionFieldsIgnored, true, operatorv1.ReasonFieldsIgnored, "These fields of the spec have no effect: "+strings.Join(fields, ", "))
	} else {
		w.set(operatorv1.ConditionFieldsIgnored, false, operatorv1.ReasonNoFieldsIgnored, "All fields of the spec have an effect")
	}
}

// waitsFor returns why the hub is not available, as one thing to do or to wait for.
func (p *pass) waitsFor() string {
	switch {
	case p.failed != nil:
		return p.failed.Error()
	case p.unready != nil:
		return p.unready.Error()
	}
	for _, name := range []string{deploy.APIServer, deploy.Manager} {
		if d := p.pod(name); d == nil || d.Status.AvailableReplicas == 0 {
			return fmt.Sprintf("Deployment %s/%s has no pod that is ready", p.cm.ServerNamespace(), name)
		}
	}
	var waiting []string
	why := ""
	for _, s := range p.served {
		if s.waits != "" {
			waiting = append(waiting, s.name)
			why = s.waits
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	message := fmt.Sprintf("The hub does not serve %s: %s", shortened(waiting), why)
	if p.cm.IsDetached() {
		spec := p.cm.Spec.Clusterhub
		if spec == nil {
			spec = &operatorv1.ClusterManagerClusterhub{}
		}
		address := addressOf(p.cm, spec)
		hint := "needs a host name there if it does not run with --enable-aggregator-routing"
		if !address.IsIP() {
			hint = "needs an IP address there if it runs with --enable-aggregator-routing"
		}
		message += fmt.Sprintf(". Its kube-apiserver asks %s, port %d (spec.clusterhub.apiServer.address), and %s", address.Host, address.Port, hint)
	}
	return message
}

func (p *pass) pod(name string) *appsv1.Deployment {
	for _, d := range p.pods {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// desiredPods returns the desired number of pods.
func desiredPods(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// setPods sets the conditions of the Deployments.
func (w statusWriter) setPods() {
	rolling := false
	var names []string
	for _, d := range w.pods {
		s, want := d.Status, desiredPods(d)
		rolling = rolling || s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want || s.Replicas > s.UpdatedReplicas || s.AvailableReplicas < want
		names = append(names, d.Name)
	}
	slices.Sort(names)
	ready := "Pods that are ready: " + strings.Join(w.ready(names...), ", ")
	if rolling {
		w.set(operatorv1.ConditionProgressing, true, operatorv1.ReasonDeploymentRolling, "Pods are being created or replaced. "+ready)
	} else {
		w.set(operatorv1.ConditionProgressing, false, operatorv1.ReasonUpToDate, ready)
	}
	w.setDegraded(operatorv1.ConditionHubRegistrationDegraded, operatorv1.ReasonUnavailableRegistrationPod, operatorv1.ReasonRegistrationFunctional,
		deploy.APIServer, deploy.Manager, deploy.Approver)
	w.setDegraded(operatorv1.ConditionHubPlacementDegraded, operatorv1.ReasonUnavailablePlacementPod, operatorv1.ReasonPlacementFunctional, deploy.Manager)
}

// ready returns texts about how many pods of the Deployments are ready.
func (p *pass) ready(names ...string) (texts []string) {
	for _, name := range names {
		if d := p.pod(name); d != nil {
			texts = append(texts, fmt.Sprintf("%s has %d of %d", name, d.Status.AvailableReplicas, desiredPods(d)))
		}
	}
	return texts
}

// setDegraded sets a condition to true while pods of one of the Deployments are missing.
func (w statusWriter) setDegraded(condition, unavailable, functional string, names ...string) {
	missing := slices.DeleteFunc(names, func(name string) bool {
		d := w.pod(name)
		return d == nil || d.Status.AvailableReplicas >= desiredPods(d)
	})
	if len(missing) > 0 {
		w.set(condition, true, unavailable, "Pods that are ready: "+strings.Join(w.ready(missing...), ", "))
		return
	}
	w.set(condition, false, functional, "All pods are ready")
}

// setCondition sets a condition of a ClusterManager.
func setCondition(cm *operatorv1.ClusterManager, condition string, is bool, reason, message string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&cm.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: kit.Message(message), ObservedGeneration: cm.Generation,
	})
}

// related returns the inventory: the created objects, in a stable order.
func related(objects []*unstructured.Unstructured) (all []operatorv1.RelatedResourceMeta) {
	seen := map[apply.ID]bool{}
	for _, o := range objects {
		id := apply.IDOf(o)
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.of(o) })
		if i < 0 || seen[id] {
			continue
		}
		seen[id] = true
		all = append(all, operatorv1.RelatedResourceMeta{
			Group: kinds[i].Group, Version: kinds[i].Version, Resource: kinds[i].Resource, Namespace: o.GetNamespace(), Name: o.GetName(),
		})
	}
	slices.SortFunc(all, func(a, b operatorv1.RelatedResourceMeta) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	return all
}
