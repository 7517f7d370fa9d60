// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
)

// makePlan makes the plan, and rejects a Klusterlet that cannot have one.
func (p *pass) makePlan(context.Context) error {
	desired, err := plan.New(p.klusterlet, p.image)
	if err != nil {
		return &rejection{why: err.Error()}
	}
	p.plan = desired
	return nil
}

func (p *pass) trackDesired(context.Context) error {
	p.track(slices.Concat(p.plan.Management, p.plan.Pods))
	return nil
}

// applyNamespace applies the namespace of the pods. It reports an error itself, since there are no pods to observe.
func (p *pass) applyNamespace(ctx context.Context) error {
	err := p.management.share(ctx, p.plan.PodNamespace)
	if err != nil {
		err = failed(apply.IDOf(p.plan.PodNamespace), err)
		p.report.applied(operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		p.report.unavailable(operatorv1.ReasonKlusterletNoAvailablePods, "the namespace of the agent does not exist: "+err.Error())
	}
	return err
}

// readSecrets reads the Secrets, and reports the state of the hub that they contain.
func (p *pass) readSecrets(ctx context.Context) error {
	if err := p.loadSecrets(ctx); err != nil {
		return err
	}
	p.report.hub(p.secrets)
	return nil
}

func (p *pass) loadSecrets(ctx context.Context) (err error) {
	hubs, _ := plan.AgentSpec{Klusterlet: p.klusterlet}.HubSecrets()
	p.secrets, err = readSecrets(ctx, p.management.client, p.klusterlet.AgentNamespace(), p.klusterlet.IsDetached(), hubs)
	return err
}

// checkSecrets stops the pass if the Secrets do not lead to the managed cluster, or not to the hub.
func (p *pass) checkSecrets(context.Context) error {
	source, problem := p.secrets.ready()
	if source == nil {
		p.connections.Close(p.klusterlet.Name)
	}
	if problem != nil {
		return kit.Outcomef(operatorv1.ReasonKlusterletPrepareFailed, "%v", problem)
	}
	p.report.ready(nil)
	p.source = source
	return nil
}

// connect connects to the managed cluster, without sending a request.
func (p *pass) connect(context.Context) error {
	to, err := p.connections.get(p.klusterlet.Name, p.management.mark, p.managementUID, p.source)
	if err != nil {
		return err
	}
	p.connection = to
	p.managed = &cluster{client: to.client, owner: p.management.owner, mark: p.management.mark,
		explain: func(err error) error { return kit.WithMessage(err, to.Explain(err)) }}
	return nil
}

// identify changes the plan if the source leads to the cluster that runs the pods.
func (p *pass) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
	defer cancel()
	same, err := p.connection.isCluster(ctx, p.managementUID)
	if err != nil {
		return managedError(err)
	}
	if !same {
		return nil
	}
	own, err := plan.AgentSpec{Klusterlet: p.klusterlet}.Plan(p.image, true)
	if err != nil {
		return kit.Outcomef(operatorv1.ReasonKlusterletApplyFailed, "%v", err)
	}
	p.plan = own
	return nil
}

// managedError returns an error that names the managed cluster.
func managedError(err error) error { return fmt.Errorf("the managed cluster: %w", err) }

// applyManaged applies the objects on a managed cluster that does not run the pods. If nothing changed, no request is sent to that cluster.
func (p *pass) applyManaged(ctx context.Context) error {
	to, name, hash := p.connection, p.klusterlet.Name, hashOf(p.plan.Managed)
	if to.isSettled(name, hash, p.clock.Now()) {
		return nil
	}
	to.watches.wait(ctx)
	to.settled.Store(nil)
	to.observations.begin(name)
	defer to.observations.end(name)
	to.observations.track(name, p.managed.mark.key, idsOf(p.plan.Managed))
	ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
	defer cancel()
	recording := *p.managed
	recording.client = recordingClient{recording.client, func(id apply.ID, o metav1.Object) { to.observations.record(name, id, o) }}
	if err := recording.apply(ctx, p.plan.Managed); err != nil {
		return managedError(err)
	}
	accounts, err := p.accounts(ctx)
	if err != nil {
		return managedError(err)
	}
	now := &settled{hash: hash, accounts: accounts}
	if recording.hidden {
		now.until = p.clock.Now().Add(unwatchedInterval)
	}
	to.settled.Store(now)
	return nil
}

// accounts returns the UIDs of the ServiceAccounts of the parts on the managed cluster.
func (p *pass) accounts(ctx context.Context) (map[string]types.UID, error) {
	uids := map[string]types.UID{}
	for _, part := range p.plan.Parts() {
		account := &corev1.ServiceAccount{}
		if err := p.connection.client.Get(ctx, client.ObjectKey{Namespace: p.plan.Namespace, Name: part.ServiceAccount}, account); err != nil {
			return nil, fmt.Errorf("ServiceAccount %s/%s: %s", p.plan.Namespace, part.ServiceAccount, p.connection.Explain(err))
		}
		// A token is requested only for accounts that were created for the Klusterlet.
		if !p.managed.owner.Owns(account) {
			return nil, fmt.Errorf("ServiceAccount %s/%s does not belong to the Klusterlet", p.plan.Namespace, part.ServiceAccount)
		}
		uids[part.ServiceAccount] = account.UID
	}
	return uids, nil
}

func (p *pass) applyManagement(ctx context.Context) error {
	return p.management.apply(ctx, p.plan.Management)
}

// mint reconciles the kubeconfigs of the pods. Those that could not be renewed may be usable for a while.
func (p *pass) mint(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
	defer cancel()
	owner, usable := p.management.owner, true
	accounts := p.connection.settled.Load().accounts
	for _, part := range p.plan.Parts() {
		state, failed := p.minter.Ensure(ctx, mint.Desired{
			Secret: types.NamespacedName{Namespace: p.plan.AgentNamespace, Name: part.Secret},
			Labels: owner.Labels, Annotations: owner.Origin,
			Account: mint.Account{Namespace: p.plan.Namespace, Name: part.ServiceAccount, UID: accounts[part.ServiceAccount]},
			Source:  p.source, Cluster: p.connection,
		})
		p.requeueAfter(state.Next.Sub(p.clock.Now()))
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("the kubeconfig %s: %w", part.Secret, failed))
		}
		usable = usable && state.Usable
	}
	switch {
	case usable:
		p.unrenewed = err
		return nil
	case err == nil:
		err = errors.New("a kubeconfig of the managed cluster does not exist yet")
	}
	return kit.Outcomef(operatorv1.ReasonManagedClusterResourceApplyFailed, "%v", err)
}

func (p *pass) applyPods(ctx context.Context) error { return p.management.apply(ctx, p.plan.Pods) }

// prune deletes the objects that are no longer desired, on both clusters, since the status does not contain on which of them an object is. Objects
// with other owners are not deleted, whatever the status lists.
func (p *pass) prune(ctx context.Context) error {
	desired, recorded := p.plan.Inventory(), p.klusterlet.Status.RelatedResources
	p.report.inventory = desired
	var stale []operatorv1.RelatedResourceMeta
	for _, resource := range recorded {
		if !slices.Contains(desired, resource) {
			stale = append(stale, resource)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	p.report.inventory = recorded // until they are gone
	if err := p.management.prune(ctx, plan.ObjectsOf(stale)); err != nil {
		return err
	}
	if p.managed != nil {
		ctx, cancel := context.WithTimeout(ctx, reach.PassTimeout)
		defer cancel()
		if err := p.managed.prune(ctx, plan.ObjectsOf(stale)); err != nil {
			return err
		}
	}
	p.report.inventory = desired
	return nil
}

// reportApplied reports that all objects are applied, and schedules the next reconcile where no watch reports changes.
func (p *pass) reportApplied(context.Context) error {
	if p.connection != nil {
		if until := p.connection.settled.Load().until; !until.IsZero() {
			p.requeueAfter(until.Sub(p.clock.Now()))
		}
	} else if p.management.hidden {
		p.requeueAfter(unwatchedInterval)
	}
	p.report.applied(operatorv1.ReasonKlusterletApplied, nil)
	if p.unrenewed != nil {
		p.report.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, p.unrenewed)
	}
	return nil
}

func (p *pass) observePods(ctx context.Context) error {
	return p.report.observePods(ctx, p.client, p.plan)
}
