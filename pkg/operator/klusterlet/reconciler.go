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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

// Reconciler reconciles Klusterlets.
type Reconciler struct {
	// klusterlets reads Klusterlets from a cache. If it is indexed, it selects them by the namespaces of their agents.
	klusterlets client.Reader
	indexed     bool
	// client is an uncached client of the management cluster.
	client client.Client
	config *rest.Config
	// management is the UID of its namespace kube-system, once it is known.
	management string
	minter     *kubeconfig.Keeper
	outsides   *outsides
	// observations has the observed state of the management cluster.
	observations *observations
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	// image is the image of agents whose Klusterlet names none.
	image string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Before the read: events from now on may not be part of what is read.
	r.observations.begin(request.Name)
	defer r.observations.end(request.Name)
	k := &operatorv1.Klusterlet{}
	if err := r.klusterlets.Get(ctx, request.NamespacedName, k); err != nil {
		if apierrors.IsNotFound(err) {
			r.outsides.drop(request.Name)
			r.observations.drop(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	k = k.DeepCopy()
	do := r.sync
	if k.DeletionTimestamp != nil {
		do = r.finalize
	}
	result, err := do(ctx, k)
	r.observations.saw(k.Name, klusterletID(k.Name), k) // as it was written last
	var out *kit.Outcome
	if errors.As(err, &out) {
		return reconcile.Result{RequeueAfter: out.RequeueAfter}, nil
	}
	return result, err
}

// requeueStale returns an Outcome that is not reported if the Klusterlet has changed after it was read, and the error otherwise.
func requeueStale(err error) error {
	if kit.IsStale(err) {
		return kit.Requeue(time.Second)
	}
	return err
}

// want sets for which objects on the cluster that runs the pods changes are relevant, besides the Klusterlet itself, which was just read. A
// Klusterlet without objects there has no Secrets either: it is rejected, and the Secrets may belong to another one.
func (r *Reconciler) want(k *operatorv1.Klusterlet, objects []*unstructured.Unstructured) {
	ids := []remote.ID{klusterletID(k.Name)}
	for _, name := range secretNames {
		if len(objects) == 0 {
			break
		}
		ids = append(ids, remote.ID{GroupKind: secrets.GroupKind(), NamespacedName: types.NamespacedName{Namespace: k.AgentNamespace(), Name: name}})
	}
	r.observations.want(k.Name, markOf(k.Name, k.UID, r.management).key, append(ids, idsOf(objects)...))
	r.observations.saw(k.Name, klusterletID(k.Name), k)
}

// noting returns a client of the management cluster for objects on which decisions are based.
func (r *Reconciler) noting(k *operatorv1.Klusterlet) client.Client {
	return noting{r.client, func(id remote.ID, o metav1.Object) { r.observations.saw(k.Name, id, o) }}
}

// here returns the cluster that runs the pods.
func (r *Reconciler) here(k *operatorv1.Klusterlet) *cluster {
	return &cluster{client: r.noting(k), owner: ownerOf(k, r.management), mark: markOf(k.Name, k.UID, r.management), pods: k.AgentNamespace()}
}

// there returns the managed cluster, if it is a different one.
func (r *Reconciler) there(k *operatorv1.Klusterlet, o *outside) *cluster {
	c := r.here(k)
	c.pods = ""
	c.client, c.explain = o.client, func(err error) error { return kit.WithMessage(err, o.Explain(err)) }
	return c
}

// sync reconciles the agent of a Klusterlet.
func (r *Reconciler) sync(ctx context.Context, k *operatorv1.Klusterlet) (reconcile.Result, error) {
	s := newReport(k)
	var others *taken
	p, err := planOf(k, r.image)
	if err == nil {
		err = r.alone(ctx, k)
		if err != nil && !errors.As(err, &others) {
			return reconcile.Result{}, err
		}
	}
	if err != nil {
		return r.refuse(ctx, k, s, err)
	}
	r.want(k, slices.Concat(p.management, p.pods))
	if err := r.finalizer(ctx, k, operatorv1.KlusterletFinalizer, true); err != nil {
		return reconcile.Result{}, err
	}
	// The inventory is written before the objects: what is no longer desired can be pruned, whenever this process ends.
	if err := r.remember(ctx, k, p.inventory()); err != nil {
		return reconcile.Result{}, err
	}
	next, failed := r.apply(ctx, k, p, s)
	if errors.As(failed, &others) {
		return r.refuse(ctx, k, s, others)
	}
	if err := r.write(ctx, k, s); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: next}, failed
}

// apply applies the plan. It returns the time until the next reconcile, and an error if it must be retried soon.
func (r *Reconciler) apply(ctx context.Context, k *operatorv1.Klusterlet, p *plan, s *report) (next time.Duration, err error) {
	here := r.here(k)
	// At once: the user has to create secrets in it.
	if err := here.share(ctx, p.namespace); err != nil {
		err = failed(remote.IDOf(p.namespace), err)
		s.applied(operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		s.unavailable(operatorv1.ReasonKlusterletNoAvailablePods, "the namespace of the agent does not exist: "+err.Error())
		return 0, err
	}
	secrets, err := r.secrets(ctx, k)
	if err != nil {
		return 0, err
	}
	s.hub(secrets)
	var via *outside
	var failed error
	if k.IsDetached() {
		source, problem := secrets.ready()
		if source == nil {
			r.outsides.drop(k.Name)
		}
		s.ready(problem)
		if problem != nil {
			return 0, r.observePods(ctx, p, s)
		}
		via, err = r.outsides.get(k, r.management, source)
		if err != nil {
			s.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, err)
			return 0, err
		}
		same, err := r.isHere(ctx, via)
		if err != nil {
			s.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, fmt.Errorf("the managed cluster: %w", err))
			return 0, errors.Join(err, r.observePods(ctx, p, s))
		}
		if same {
			own, err := agentSpec{k}.plan(r.image, true)
			if err != nil {
				s.applied(operatorv1.ReasonKlusterletApplyFailed, err)
				return 0, r.observePods(ctx, p, s)
			}
			p = own
		}
		if err := r.finalizer(ctx, k, operatorv1.KlusterletHostedFinalizer, true); err != nil {
			return 0, err
		}
		if err := r.applyRemote(ctx, k, p, via); err != nil {
			s.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, fmt.Errorf("the managed cluster: %w", err))
			return 0, errors.Join(err, r.observePods(ctx, p, s))
		}
		if err := here.apply(ctx, p.management); err != nil {
			s.applied(operatorv1.ReasonManagementClusterResourceApplyFailed, err)
			return 0, errors.Join(err, r.observePods(ctx, p, s))
		}
		usable := false
		next, usable, failed = r.mint(ctx, k, p, source, via)
		if !usable {
			s.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, failed)
			return next, r.observePods(ctx, p, s)
		}
	} else if err := here.apply(ctx, p.management); err != nil {
		s.applied(operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		return 0, errors.Join(err, r.observePods(ctx, p, s))
	}
	if err := here.apply(ctx, p.pods); err != nil {
		s.applied(operatorv1.ReasonManagementClusterResourceApplyFailed, err)
		return next, errors.Join(err, r.observePods(ctx, p, s))
	}
	if err := r.prune(ctx, k, p, via, s); err != nil {
		s.applied(operatorv1.ReasonKlusterletApplyFailed, err)
		return next, errors.Join(err, r.observePods(ctx, p, s))
	}
	if via != nil {
		if until := via.settled.Load().until; !until.IsZero() {
			next = sooner(next, until.Sub(r.clock.Now()))
		}
	} else if here.hidden {
		next = sooner(next, unwatchedInterval)
	}
	s.applied(operatorv1.ReasonKlusterletApplied, nil)
	if failed != nil {
		s.applied(operatorv1.ReasonManagedClusterResourceApplyFailed, failed)
	}
	return next, r.observePods(ctx, p, s)
}

// isHere reports whether a source leads to the cluster that runs the pods.
func (r *Reconciler) isHere(ctx context.Context, via *outside) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
	defer cancel()
	return via.isCluster(ctx, r.management)
}

// applyRemote applies the objects for a managed cluster elsewhere. If nothing changed, no request is sent to that cluster.
func (r *Reconciler) applyRemote(ctx context.Context, k *operatorv1.Klusterlet, p *plan, via *outside) error {
	what := hashOf(p.managed)
	if via.isSettled(k.Name, what, r.clock.Now()) {
		return nil
	}
	via.watches.wait(ctx)
	via.settled.Store(nil)
	via.observations.begin(k.Name)
	defer via.observations.end(k.Name)
	via.observations.want(k.Name, markOf(k.Name, k.UID, r.management).key, idsOf(p.managed))
	ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
	defer cancel()
	there := r.there(k, via)
	there.client = noting{there.client, func(id remote.ID, o metav1.Object) { via.observations.saw(k.Name, id, o) }}
	if err := there.apply(ctx, p.managed); err != nil {
		return err
	}
	accounts, err := r.accounts(ctx, k, p, via)
	if err != nil {
		return err
	}
	now := &settled{what: what, accounts: accounts}
	if there.hidden {
		now.until = r.clock.Now().Add(unwatchedInterval)
	}
	via.settled.Store(now)
	return nil
}

// accounts returns the UIDs of the ServiceAccounts of the parts.
func (r *Reconciler) accounts(ctx context.Context, k *operatorv1.Klusterlet, p *plan, via *outside) (map[string]types.UID, error) {
	uids := map[string]types.UID{}
	for _, part := range p.Parts() {
		account := &corev1.ServiceAccount{}
		if err := via.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: part.ServiceAccount}, account); err != nil {
			return nil, fmt.Errorf("ServiceAccount %s/%s: %s", p.Namespace, part.ServiceAccount, via.Explain(err))
		}
		// A token is requested only for accounts that were created for the Klusterlet.
		if !ownerOf(k, r.management).Owns(account) {
			return nil, fmt.Errorf("ServiceAccount %s/%s does not belong to the Klusterlet", p.Namespace, part.ServiceAccount)
		}
		uids[part.ServiceAccount] = account.UID
	}
	return uids, nil
}

// mint reconciles the kubeconfigs of the pods. Those that could not be renewed may be usable for a while.
func (r *Reconciler) mint(
	ctx context.Context, k *operatorv1.Klusterlet, p *plan, source *kubeconfig.Source, via *outside,
) (next time.Duration, usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
	defer cancel()
	owner, usable := ownerOf(k, r.management), true
	accounts := via.settled.Load().accounts
	for _, part := range p.Parts() {
		state, failed := r.minter.Ensure(ctx, kubeconfig.Wanted{
			Secret: types.NamespacedName{Namespace: p.AgentNamespace, Name: part.Secret},
			Labels: owner.Labels, Annotations: owner.Origin,
			Account: kubeconfig.Account{Namespace: p.Namespace, Name: part.ServiceAccount, UID: accounts[part.ServiceAccount]},
			Source:  source, Cluster: via,
		})
		next = sooner(next, state.Next.Sub(r.clock.Now()))
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("the kubeconfig %s: %w", part.Secret, failed))
		}
		usable = usable && state.Usable
	}
	if !usable && err == nil {
		err = errors.New("a kubeconfig of the managed cluster does not exist yet")
	}
	return next, usable, err
}

// sooner returns the earlier of two times until the next reconcile. 0 means that none is scheduled.
func sooner(next, after time.Duration) time.Duration {
	after = max(after, time.Second)
	if next == 0 || after < next {
		return after
	}
	return next
}

// finalizer adds or removes a finalizer.
func (r *Reconciler) finalizer(ctx context.Context, k *operatorv1.Klusterlet, name string, has bool) error {
	_, err := kit.Patch(ctx, r.client, k, func(k *operatorv1.Klusterlet) {
		if has {
			controllerutil.AddFinalizer(k, name)
		} else {
			controllerutil.RemoveFinalizer(k, name)
		}
	})
	return requeueStale(err)
}

// remember adds objects to the inventory in the status.
func (r *Reconciler) remember(ctx context.Context, k *operatorv1.Klusterlet, wanted []operatorv1.RelatedResourceMeta) error {
	_, err := kit.PatchStatus(ctx, r.client, k, func(k *operatorv1.Klusterlet) {
		for _, resource := range wanted {
			if !slices.Contains(k.Status.RelatedResources, resource) {
				k.Status.RelatedResources = append(k.Status.RelatedResources, resource)
			}
		}
	})
	return requeueStale(err)
}

// write writes the report to the status.
func (r *Reconciler) write(ctx context.Context, k *operatorv1.Klusterlet, s *report) error {
	before := k.DeepCopy()
	changed, err := kit.PatchStatus(ctx, r.client, k, s.into)
	if changed && err == nil {
		conditionevents.RecordAll(r.recorder, k, before.Status.Conditions, k.Status.Conditions, "Reconcile")
	}
	return requeueStale(err)
}
