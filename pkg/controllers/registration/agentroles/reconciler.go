// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agentroles

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apihelper "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// ownInterval is the interval of checks whether all clusters have roles of their own. Until then, the shared role stays bound for those that have
// none.
const ownInterval = 10 * time.Second

// sinceHeld is the APIService of a version that hub-apiserver has served since it limits agents to their own clusters.
var sinceHeld = clusterv1alpha1.SchemeGroupVersion.Version + "." + clusterv1alpha1.SchemeGroupVersion.Group

// Reconciler creates or deletes the bindings of the shared roles.
type Reconciler struct {
	Options
	// client reads from the caches, live from the API server.
	client client.Client
	live   client.Reader
	// said is the last log message about the bindings.
	said string
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	// All changes lead to the same request: there is one thing to reconcile.
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return slices.ContainsFunc((Options{}).shared(), func(s shared) bool { return s.name == obj.GetName() })
	}))
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		Watches(&apiregistrationv1.APIService{}, one).
		Watches(&rbacv1.ClusterRoleBinding{}, one, ours).
		// Objects that are read from the cache must be watched.
		Watches(&rbacv1.ClusterRole{}, one, never()).
		Watches(&clusterv1.ManagedCluster{}, one, never()).
		Watches(&corev1.ConfigMap{}, one, never()).
		WithOptions(kit.Options(1)).
		Complete(r)
}

// never drops all events, for objects that are read, and whose changes do not matter.
func never() builder.Predicates {
	return builder.WithPredicates(predicate.NewPredicateFuncs(func(client.Object) bool { return false }))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	services := &apiregistrationv1.APIServiceList{}
	if err := r.client.List(ctx, services); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing APIServices: %w", err)
	}
	roles, without, older := r.shared(), "", r.older(services.Items)
	elsewhere := map[string]string{}
	for _, s := range roles {
		elsewhere[s.name] = r.elsewhere(services.Items, s.groups)
	}
	if elsewhere[ClusterRole] == "" && r.Roles != Shared {
		var err error
		without, err = r.withoutOwn(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	r.report(ctx, elsewhere[ClusterRole], elsewhere[WorksClusterRole], older, without)
	for _, s := range roles {
		var err error
		switch {
		case elsewhere[s.name] != "" || !s.wanted || r.Roles != Shared && without == "" && !s.always:
			err = r.unbind(ctx, s.name)
		case r.Roles == Shared || s.always:
			err = r.bind(ctx, s.name, older == "")
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	if without != "" {
		return reconcile.Result{RequeueAfter: ownInterval}, nil
	}
	return reconcile.Result{}, nil
}

// elsewhere returns why these groups are not served by hub-apiserver in all versions, or "". An APIService without a Service is created by
// kube-apiserver for a CustomResourceDefinition.
func (r *Reconciler) elsewhere(services []apiregistrationv1.APIService, groups []string) string {
	for _, group := range groups {
		found := false
		for i := range services {
			s := &services[i]
			if s.Spec.Group != group {
				continue
			}
			found = true
			switch service := s.Spec.Service; {
			case service == nil:
				return fmt.Sprintf("the APIService %s is not served by hub-apiserver, but from a CustomResourceDefinition", s.Name)
			case service.Namespace+"/"+service.Name != r.Service:
				return fmt.Sprintf("the APIService %s refers to the Service %s/%s, not to %s", s.Name, service.Namespace, service.Name, r.Service)
			}
		}
		if !found {
			return "no APIService exists for " + group
		}
	}
	return ""
}

// older returns why hub-apiserver may be too old to limit agents to their own clusters, or "". kube-apiserver checks what hub-apiserver serves of a
// version, and reports the result in a condition.
func (r *Reconciler) older(services []apiregistrationv1.APIService) string {
	i := slices.IndexFunc(services, func(s apiregistrationv1.APIService) bool { return s.Name == sinceHeld })
	switch {
	case i < 0:
		return fmt.Sprintf("the APIService %s does not exist: apply the manifests of this version", sinceHeld)
	case !apihelper.IsAPIServiceConditionTrue(&services[i], apiregistrationv1.Available):
		return fmt.Sprintf("the APIService %s is not available: hub-apiserver does not respond, or has an older version", sinceHeld)
	}
	return ""
}

// withoutOwn returns an accepted cluster that has no role of its own yet, or "". It skips clusters without a record, which were never granted
// anything.
func (r *Reconciler) withoutOwn(ctx context.Context) (string, error) {
	clusters := &clusterv1.ManagedClusterList{}
	if err := r.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing ManagedClusters: %w", err)
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		if !cluster.Spec.HubAcceptsClient || !cluster.DeletionTimestamp.IsZero() {
			continue
		}
		kept, err := record.Get(ctx, r.client, cluster.Name)
		if err != nil {
			return "", err
		}
		if record.Of(kept).Driver == "" {
			continue
		}
		if own, err := r.hasOwn(ctx, cluster.Name); err != nil || !own {
			return cluster.Name, err
		}
	}
	return "", nil
}

func (r *Reconciler) hasOwn(ctx context.Context, cluster string) (bool, error) {
	key := client.ObjectKey{Name: registration.ClusterRole(cluster)}
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	for _, obj := range []client.Object{role, binding} {
		if err := r.client.Get(ctx, key, obj); err != nil {
			return false, kit.IgnoreGone(err)
		}
	}
	// The role of a denied cluster has fewer rules.
	return len(role.Rules) >= len(Rules(cluster)) && binding.DeletionTimestamp.IsZero() && role.DeletionTimestamp.IsZero(), nil
}

// bind binds a shared role to all agents. It uses apply, because RBAC can limit that to a name, and cannot limit POST. If it is not certain that
// hub-apiserver limits agents, an existing correct binding stays: hub-apiserver may just be restarting.
func (r *Reconciler) bind(ctx context.Context, name string, held bool) error {
	got := &rbacv1.ClusterRoleBinding{}
	key := client.ObjectKey{Name: name}
	err := r.client.Get(ctx, key, got)
	if err == nil && asWanted(got) {
		return nil
	}
	if !held {
		return r.unbind(ctx, name)
	}
	// The binding is not in the cache yet, or has lost its label.
	if err = r.live.Get(ctx, key, got); kit.IgnoreGone(err) != nil {
		return fmt.Errorf("binding the ClusterRole %s: %w", name, err)
	}
	if err == nil && got.RoleRef != roleRef(name) {
		if err := r.client.Delete(ctx, got, kit.AsRead(got)); kit.IgnoreGone(err) != nil {
			return fmt.Errorf("replacing the ClusterRoleBinding %s: %w", name, err)
		}
	}
	want := rbacv1ac.ClusterRoleBinding(name).WithLabels(map[string]string{registration.ClusterNameLabel: label}).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name))
	for _, s := range subjects() {
		want = want.WithSubjects(rbacv1ac.Subject().WithAPIGroup(s.APIGroup).WithKind(s.Kind).WithName(s.Name))
	}
	if err := r.client.Apply(ctx, want, client.FieldOwner("hub-controller-manager"), client.ForceOwnership); err != nil {
		return fmt.Errorf("binding the ClusterRole %s, which requires the rights of artifacts/deploy/base: %w", name, err)
	}
	return nil
}

// unbind deletes the binding of a shared role. It does not read from the cache, which does not have bindings without the label.
func (r *Reconciler) unbind(ctx context.Context, name string) error {
	binding := &rbacv1.ClusterRoleBinding{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, binding)
	if err == nil {
		err = r.client.Delete(ctx, binding)
	}
	if kit.IgnoreGone(err) != nil {
		return fmt.Errorf("deleting the ClusterRoleBinding %s: %w", name, err)
	}
	return nil
}

// report logs how agents get their rights, when that has changed. works is the reason why they have the role for works only in their namespaces.
func (r *Reconciler) report(ctx context.Context, elsewhere, works, older, without string) {
	what := "Agents use a ClusterRole for each cluster"
	switch {
	case elsewhere != "":
		what = "Agents are not granted the shared ClusterRole: " + elsewhere
	case r.Roles == Shared && older != "":
		what = "Agents are not granted the shared ClusterRole unless they already have it: " + older
	case without != "":
		what = "Agents keep the shared ClusterRole until all accepted clusters have their own"
	case r.Roles == Shared:
		what = "Agents use the shared ClusterRole"
	}
	if elsewhere == "" && works != "" {
		what += ". They have rights to works in the namespaces of their clusters only: " + works
	}
	if what != r.said {
		ctrl.LoggerFrom(ctx).Info(what, "clusterRole", ClusterRole, "waitingFor", without)
		r.said = what
	}
}
