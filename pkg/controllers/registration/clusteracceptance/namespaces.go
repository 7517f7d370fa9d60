// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/contents"
)

const (
	// minCheckInterval and maxCheckInterval are the shortest and the longest interval between checks of a namespace that is not empty.
	minCheckInterval = 5 * time.Second
	maxCheckInterval = 10 * time.Minute
	// checkQPS and checkBurst limit the requests that check namespaces: some sixty for each.
	checkQPS   = 200
	checkBurst = 200
	lookers    = 4
)

// namespaces deletes the namespaces that the hub has created for clusters, once the cluster is denied or gone and the namespace is empty. It also
// removes the agent's finalizer from works whose agent has no access any more.
type namespaces struct {
	client client.Client
	live   client.Reader
	// left names an object in a namespace, or returns "" if it is empty.
	left func(ctx context.Context, namespace string) (string, error)
	// checks is the backoff of checks, by namespace.
	checks workqueue.TypedRateLimiter[string]

	mu   sync.Mutex
	user string
}

var _ reconcile.Reconciler = &namespaces{}

func setupNamespaces(mgr ctrl.Manager) error {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst, config.RateLimiter = checkQPS, checkBurst, nil
	inside, err := contents.New(config)
	if err != nil {
		return err
	}
	inside.Binding = registration.InspectorRoleBinding
	n := newNamespaces(mgr.GetClient(), mgr.GetAPIReader(), inside.First)
	return ctrl.NewControllerManagedBy(mgr).
		Named("clusternamespace").
		For(&corev1.Namespace{}).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(namespaceOf), builder.WithPredicates(mayFree())).
		WithOptions(kit.Options(lookers)).
		Complete(n)
}

func newNamespaces(c client.Client, live client.Reader, left func(context.Context, string) (string, error)) *namespaces {
	return &namespaces{
		client: c, live: live, left: left,
		checks: workqueue.NewTypedItemExponentialFailureRateLimiter[string](minCheckInterval, maxCheckInterval),
	}
}

func namespaceOf(_ context.Context, cluster client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster.GetName()}}}
}

// mayFree passes events after which a namespace may be deletable.
func mayFree() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return denied(e.ObjectNew.(*clusterv1.ManagedCluster)) },
	}
}

// denied reports whether a cluster is denied and only its namespace is left.
func denied(cluster *clusterv1.ManagedCluster) bool {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	return !cluster.Spec.HubAcceptsClient && condition != nil && condition.Reason == registration.ReasonDenied
}

// Reconcile implements reconcile.Reconciler.
func (n *namespaces) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := n.client.Get(ctx, request.NamespacedName, namespace); err != nil {
		n.checks.Forget(request.Name)
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	ended := !namespace.DeletionTimestamp.IsZero()
	mine := namespace.Annotations[registration.AnnotationMade] == namespace.Name
	if !mine && namespace.Labels[registration.ClusterNameLabel] != namespace.Name {
		return reconcile.Result{}, nil
	}
	free, gone, err := n.free(ctx, namespace.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !free {
		n.checks.Forget(namespace.Name)
		if ended || !mine {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, n.unbind(ctx, namespace.Name)
	}
	if gone || ended {
		if err := n.release(ctx, namespace.Name); err != nil {
			return reconcile.Result{}, fmt.Errorf("removing the finalizers of the works in the namespace %s: %w", namespace.Name, err)
		}
	}
	switch {
	case ended: // another check follows for works that other clients must still delete
		return reconcile.Result{RequeueAfter: n.checks.When(namespace.Name)}, nil
	case !mine:
		return reconcile.Result{}, nil
	}
	what, err := n.left(ctx, namespace.Name)
	switch {
	case apierrors.IsForbidden(err):
		bound, bindErr := n.bind(ctx, namespace.Name)
		switch {
		case bindErr != nil:
			return reconcile.Result{}, bindErr
		case !bound:
			ctrl.LoggerFrom(ctx).Info("Keeping the namespace of a deleted cluster: no permission to list its content", "reason", err.Error())
			return reconcile.Result{RequeueAfter: n.checks.When(namespace.Name)}, nil
		}
		// The API server learns of the binding in a moment.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("listing the content of the namespace %s: %w", namespace.Name, err)
	case what != "":
		wait := n.checks.When(namespace.Name)
		ctrl.LoggerFrom(ctx).Info("Keeping the namespace of a deleted cluster", "left", what, "next", wait)
		return reconcile.Result{RequeueAfter: wait}, n.unbind(ctx, namespace.Name)
	}
	err = n.client.Delete(ctx, namespace, kit.AsRead(namespace))
	if err != nil && !kit.IsStale(err) {
		return reconcile.Result{}, fmt.Errorf("deleting namespace %s: %w", namespace.Name, err)
	}
	n.checks.Forget(namespace.Name)
	return reconcile.Result{}, nil
}

// free reports whether no cluster needs the namespace, and whether the cluster does not exist. It does not rely on a cache alone for that.
func (n *namespaces) free(ctx context.Context, name string) (free, gone bool, err error) {
	gone = true
	for _, reader := range []client.Reader{n.client, n.live} {
		cluster := &clusterv1.ManagedCluster{}
		err := reader.Get(ctx, client.ObjectKey{Name: name}, cluster)
		switch {
		case kit.IsGone(err):
		case err != nil:
			return false, false, err
		case !denied(cluster) || !cluster.DeletionTimestamp.IsZero():
			return false, false, nil
		default:
			gone = false
		}
	}
	return true, gone, nil
}

// release removes the agent's finalizer from works that are being deleted. The agent has no access any more and would never remove it. The
// objects of these works stay in the cluster until its agent has access again and finds the works missing.
func (n *namespaces) release(ctx context.Context, namespace string) error {
	kind := workv1.SchemeGroupVersion.WithKind("ManifestWork")
	return paging.EachItem(ctx, listIn(n.live, kind, namespace), metav1.ListOptions{}, func(w *metav1.PartialObjectMetadata) error {
		if w.DeletionTimestamp.IsZero() {
			return nil
		}
		w.SetGroupVersionKind(kind)
		changed, err := kit.Patch(ctx, n.client, w, func(w *metav1.PartialObjectMetadata) {
			controllerutil.RemoveFinalizer(w, workv1.ManifestWorkFinalizer)
		})
		if changed {
			ctrl.LoggerFrom(ctx).Info("Removed the finalizer of an agent without access from a work", "work", namespace+"/"+w.Name)
		}
		return kit.IgnoreStale(err)
	})
}

// bind allows this process to list what is in one namespace. It has no such permission anywhere else. It returns false if the binding existed.
func (n *namespaces) bind(ctx context.Context, namespace string) (bool, error) {
	user, err := n.identity(ctx)
	if err != nil {
		return false, err
	}
	err = n.client.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: objectMeta(namespace, namespace, registration.InspectorRoleBinding),
		RoleRef:    roleRef(registration.InspectorClusterRole),
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return true, err
}

// unbind deletes that binding.
func (n *namespaces) unbind(ctx context.Context, namespace string) error {
	binding := &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: namespace, Name: registration.InspectorRoleBinding}
	if err := n.client.Get(ctx, key, binding); err != nil {
		return kit.IgnoreGone(err)
	}
	return kit.IgnoreGone(n.client.Delete(ctx, binding))
}

// identity returns the user of this process.
func (n *namespaces) identity(ctx context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.user == "" {
		review := &authenticationv1.SelfSubjectReview{}
		if err := n.client.Create(ctx, review); err != nil {
			return "", fmt.Errorf("getting the user name of this process from the hub: %w", err)
		}
		n.user = review.Status.UserInfo.Username
	}
	return n.user, nil
}
