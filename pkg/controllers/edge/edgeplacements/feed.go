// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"context"
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

// watchedKind is a kind, and the handler of its events.
type watchedKind struct {
	kind    client.Object
	handler handler.EventHandler
}

// watches returns all kinds that decisions depend on.
func (r *Reconciler) watches() []watchedKind {
	return []watchedKind{
		feed(r, r.setCluster, r.deleteCluster),
		feed(r, r.setSet, func(_ context.Context, s *clusterv1beta2.ManagedClusterSet, _ queue) {
			r.members(r.index.DeleteSet(s.Name))
		}),
		feed(r, r.setBinding, func(_ context.Context, b *clusterv1beta2.ManagedClusterSetBinding, _ queue) {
			r.engine.Unbind(b.Namespace, b.Name)
		}),
		feed(r, r.setNode, r.deleteNode),
		feed(r, r.setService, r.deleteService),
		feed(r, r.setPolicy, func(_ context.Context, p *edgev1alpha1.DeploymentPolicy, _ queue) { r.deleteDeployment(policyKey(p)) }),
		feed(r, r.setPattern, func(_ context.Context, p *edgev1alpha1.DeploymentPattern, _ queue) { r.deleteDeployment(patternKey(p)) }),
		feed(r, r.setPlacement, r.deletePlacement),
	}
}

// feed returns a handler that passes changes to the engine, and enqueues what they concern. A panic caused by one object must not end the process,
// which would find the same object after a restart.
func feed[O any, T interface {
	*O
	client.Object
}](r *Reconciler, set, gone func(context.Context, T, queue)) watchedKind {
	do := func(ctx context.Context, obj client.Object, q queue, tell func(context.Context, T, queue)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		func() {
			defer func() {
				if fault := recover(); fault != nil {
					ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v\n%s", fault, debug.Stack()), "Skipped a change for the edge placements",
						"kind", fmt.Sprintf("%T", obj), "object", klog.KObj(obj))
				}
			}()
			tell(ctx, obj.(T), q)
		}()
		pairs, keys := r.engine.Changed()
		for _, pair := range pairs {
			q.Add(pairRequest(pair))
		}
		for _, key := range keys {
			q.AddAfter(statusRequest(key), gather)
		}
	}
	return watchedKind{kind: T(new(O)), handler: handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { do(ctx, e.Object, q, set) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { do(ctx, e.ObjectNew, q, set) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { do(ctx, e.Object, q, gone) },
	}}
}

func (r *Reconciler) setCluster(ctx context.Context, c *clusterv1.ManagedCluster, _ queue) {
	r.members(r.index.SetCluster(&cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: c.UID, Labels: c.Labels}}))
	if c.Spec.HubAcceptsClient && c.DeletionTimestamp.IsZero() {
		r.accepted[c.Name] = c.UID
	} else {
		delete(r.accepted, c.Name)
	}
	r.observeNode(ctx, c.Name)
}

func (r *Reconciler) deleteCluster(ctx context.Context, c *clusterv1.ManagedCluster, _ queue) {
	r.members(r.index.DeleteCluster(c.Name))
	delete(r.accepted, c.Name)
	r.observeNode(ctx, c.Name)
}

// setSet adds a set. A set that cannot be read selects nothing.
func (r *Reconciler) setSet(_ context.Context, s *clusterv1beta2.ManagedClusterSet, _ queue) {
	internal := &cluster.ManagedClusterSet{}
	err := clusterv1beta2.Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(s, internal, nil)
	if err == nil {
		_, err = selector.For(internal)
	}
	if err != nil {
		internal = &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: s.Name, UID: s.UID}}
		internal.Spec.ClusterSelector.SelectorType = "Unknown"
	}
	r.members(r.index.SetSet(internal))
}

// members passes the clusters that were added to sets, or removed from them, to the engine.
func (r *Reconciler) members(changes []membership.Change) {
	seen := map[string]bool{}
	for _, change := range changes {
		if name := change.Member.Spec.Cluster; !seen[name] {
			seen[name] = true
			r.engine.SetSets(name, r.index.SetsOf(name))
		}
	}
}

// setBinding adds a binding that is not being deleted. Its name must be that of the set: the user who created it had the permission for that one.
func (r *Reconciler) setBinding(_ context.Context, b *clusterv1beta2.ManagedClusterSetBinding, _ queue) {
	if !b.DeletionTimestamp.IsZero() || b.Spec.ClusterSet != b.Name {
		r.engine.Unbind(b.Namespace, b.Name)
		return
	}
	r.engine.Bind(b.Namespace, b.Name)
}

func (r *Reconciler) setNode(ctx context.Context, n *edgev1alpha1.EdgeNode, _ queue) {
	r.nodes[n.Name] = n
	r.observeNode(ctx, n.Name)
}

func (r *Reconciler) deleteNode(ctx context.Context, n *edgev1alpha1.EdgeNode, _ queue) {
	delete(r.nodes, n.Name)
	r.observeNode(ctx, n.Name)
}

// observeNode adds a node if it counts: it must be that of an accepted cluster, and not of an earlier one of the same name.
func (r *Reconciler) observeNode(ctx context.Context, name string) {
	n, uid := r.nodes[name], r.accepted[name]
	if n == nil || !BelongsTo(n, uid) {
		r.engine.DeleteNode(name)
		return
	}
	if err := r.engine.SetNode(model.Node(n.Name, &n.Spec, &n.Status)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Nothing is deployed to a node that cannot be read", "node", name)
	}
}

// BelongsTo reports whether a node belongs to the cluster with this UID, and is not being deleted.
func BelongsTo(n *edgev1alpha1.EdgeNode, uid any) bool {
	for _, owner := range n.OwnerReferences {
		if owner.Kind == "ManagedCluster" && owner.Name == n.Name && any(owner.UID) == uid && owner.UID != "" {
			return n.DeletionTimestamp.IsZero()
		}
	}
	return false
}

func (r *Reconciler) setService(ctx context.Context, s *edgev1alpha1.EdgeService, q queue) {
	if !s.DeletionTimestamp.IsZero() {
		r.deleteService(ctx, s, q)
		return
	}
	r.engine.SetService(model.StoredService(s))
}

func (r *Reconciler) deleteService(_ context.Context, s *edgev1alpha1.EdgeService, _ queue) {
	r.engine.DeleteService(engine.ServiceKey{Org: s.Namespace, Name: s.Spec.URL}, s.Spec.Version, s.Spec.Arch)
}

func policyKey(p *edgev1alpha1.DeploymentPolicy) engine.Key {
	return engine.Key{Namespace: p.Namespace, Name: p.Name}
}

func patternKey(p *edgev1alpha1.DeploymentPattern) engine.Key {
	return engine.Key{Namespace: p.Namespace, Pattern: true, Name: p.Name}
}

func (r *Reconciler) setPolicy(ctx context.Context, p *edgev1alpha1.DeploymentPolicy, q queue) {
	if key := policyKey(p); r.isNew(key, p, q) {
		r.failed(ctx, key, r.engine.SetDeployment(key, Specs(p)))
	}
}

func (r *Reconciler) setPattern(ctx context.Context, p *edgev1alpha1.DeploymentPattern, q queue) {
	if key := patternKey(p); r.isNew(key, p, q) {
		r.failed(ctx, key, r.engine.SetDeployment(key, Specs(p)))
	}
}

func (r *Reconciler) failed(ctx context.Context, key engine.Key, err error) {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Nothing is deployed for an object that cannot be read", "namespace", key.Namespace, "name", key.Name)
	}
}

// isNew reports whether a spec is not known yet. It enqueues the status in any case: others may have written it.
func (r *Reconciler) isNew(key engine.Key, obj client.Object, q queue) bool {
	if !obj.GetDeletionTimestamp().IsZero() {
		r.deleteDeployment(key)
		return false
	}
	q.AddAfter(statusRequest(key), gather)
	now := generation{obj.GetUID(), obj.GetGeneration()}
	if r.generations[key] == now {
		return false
	}
	r.generations[key] = now
	delete(r.refusals, key)
	return true
}

func (r *Reconciler) deleteDeployment(key engine.Key) {
	delete(r.generations, key)
	delete(r.refusals, key)
	r.engine.DeleteDeployment(key)
}

// Specs returns the specs of a policy or a pattern for the engine.
func Specs(obj client.Object) []engine.Spec {
	switch p := obj.(type) {
	case *edgev1alpha1.DeploymentPolicy:
		return []engine.Spec{model.Policy(p.Namespace, p.Name, &p.Spec, nil)}
	case *edgev1alpha1.DeploymentPattern:
		return model.PatternServices(p.Namespace, p.Name, &p.Spec, nil)
	}
	return nil
}

func (r *Reconciler) setPlacement(_ context.Context, p *edgev1alpha1.EdgePlacement, q queue) {
	pair, ours := PairOf(p)
	if !ours {
		q.Add(strayRequest(p))
		return
	}
	if r.states[pair.Key] == nil {
		r.states[pair.Key] = map[string]edgev1alpha1.PlacementState{}
	}
	r.states[pair.Key][pair.Node] = p.Status.State
	if !p.DeletionTimestamp.IsZero() {
		r.states[pair.Key][pair.Node] = edgev1alpha1.PlacementRemoving
	}
	r.engine.SetPlaced(pair, placed(p))
	r.engine.SetFailed(pair, FailedVersions(p.Status.Attempts))
	q.Add(pairRequest(pair))
	q.AddAfter(statusRequest(pair.Key), gather)
}

func (r *Reconciler) deletePlacement(_ context.Context, p *edgev1alpha1.EdgePlacement, q queue) {
	pair, ours := PairOf(p)
	if !ours {
		return
	}
	delete(r.states[pair.Key], pair.Node)
	if len(r.states[pair.Key]) == 0 {
		delete(r.states, pair.Key)
	}
	r.engine.SetPlaced(pair, nil)
	r.engine.SetFailed(pair, nil)
	// A deleted placement is created again if it is wanted.
	q.Add(pairRequest(pair))
	q.AddAfter(statusRequest(pair.Key), gather)
}

// FailedVersions returns the versions that are not tried again while another one fits.
func FailedVersions(attempts []edgev1alpha1.VersionAttempt) (versions []edge.Failed) {
	for _, a := range attempts {
		if a.State == edgev1alpha1.AttemptGivenUp {
			versions = append(versions, edge.Failed{Org: a.Org, Service: a.Name, Version: a.Version})
		}
	}
	return versions
}

// placed returns the services of a placement in the form of the engine.
func placed(p *edgev1alpha1.EdgePlacement) (list []engine.Placed) {
	for _, s := range p.Spec.Services {
		list = append(list, engine.Placed{ServiceKey: engine.ServiceKey{Org: s.Org, Name: s.Name}, Version: s.Version, Arch: s.Arch, Namespace: s.TargetNamespace})
	}
	return list
}
