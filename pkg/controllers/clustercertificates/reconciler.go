// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercertificates approves the certificate requests of the agents of clusters that are accepted and register
// by certificate: their first ones, and their renewals.
//
// A request is approved only if every part of it is known and right; of the rest, none is denied: it may be somebody
// else's, and an admin may know more. A first certificate is the moment at which somebody who only may make clusters
// becomes one of them, so it takes the key that the cluster was made with, or, from agents that do not say their key,
// that the cluster has never joined.
package clustercertificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/csr"
	names "github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// reasonApproved is upstream's.
	reasonApproved = "AutoApprovedByHubCSRApprovingController"

	reporter = "clustercertificates"

	// pendingIndex finds the requests of a cluster that nobody has decided on.
	pendingIndex = "pending"

	workers        = 8
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 30 * time.Second
)

// Options are what the controller needs to be told.
type Options struct {
	// BootstrapUsers may ask for first certificates, beside the users of bootstrap tokens.
	BootstrapUsers []string
}

// Reconciler decides on one certificate request.
type Reconciler struct {
	Options
	// client reads from the caches, live from the API server: a certificate lasts longer than what a cache has missed.
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	request := &certificatesv1.CertificateSigningRequest{}
	if err := mgr.GetFieldIndexer().IndexField(ctx, request, pendingIndex, pendingOf); err != nil {
		return err
	}
	r := &Reconciler{
		Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(reporter),
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(reporter).
		For(request).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(r.requestsOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: annotationsChanged})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstBackoff, longestBackoff),
		}).
		Complete(r)
}

func pendingOf(obj client.Object) []string {
	request := obj.(*certificatesv1.CertificateSigningRequest)
	if cluster := request.Labels[names.ClusterNameLabel]; cluster != "" && csr.IsPending(request) {
		return []string{cluster}
	}
	return nil
}

// clusterChanged lets through changes of what a decision depends on.
func clusterChanged(e event.UpdateEvent) bool {
	before, now := e.ObjectOld.(*clusterv1.ManagedCluster), e.ObjectNew.(*clusterv1.ManagedCluster)
	return before.UID != now.UID || before.Spec.HubAcceptsClient != now.Spec.HubAcceptsClient ||
		before.Annotations[names.AnnotationAgentKey] != now.Annotations[names.AnnotationAgentKey]
}

func annotationsChanged(e event.UpdateEvent) bool {
	before, now := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
	return before[names.AnnotationGranted] != now[names.AnnotationGranted] ||
		before[names.AnnotationDriver] != now[names.AnnotationDriver] ||
		before[names.AnnotationClusterUID] != now[names.AnnotationClusterUID]
}

// requestsOf maps a cluster, or what carries its name, to the requests of its agents that wait.
func (r *Reconciler) requestsOf(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster := obj.GetName()
	if _, ok := obj.(*clusterv1.ManagedCluster); !ok {
		cluster = obj.GetLabels()[names.ClusterNameLabel]
	}
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{pendingIndex: cluster}); err != nil {
		// The cache has not got the requests yet. Each of them is reconciled when it has.
		ctrl.LoggerFrom(ctx).Error(err, "Listing the certificate requests of a cluster", "cluster", cluster)
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !csr.IsPending(object) {
		return reconcile.Result{}, nil
	}
	parsed, err := csr.Parse(object)
	if errors.Is(err, csr.ErrOther) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		r.leave(object, nil, err.Error())
		return reconcile.Result{}, nil
	}
	cluster, why, err := r.decide(ctx, object, parsed)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case why != "":
		r.leave(object, cluster, why)
		return reconcile.Result{}, nil
	case cluster == nil:
		return reconcile.Result{}, nil // until something changes
	}
	return reconcile.Result{}, r.approve(ctx, object, cluster)
}

// decide returns the cluster when the request is to be approved, or why it is left to an admin. Without either, the
// cluster is not that far yet.
func (r *Reconciler) decide(ctx context.Context, object *certificatesv1.CertificateSigningRequest, parsed *csr.Request) (
	cluster *clusterv1.ManagedCluster, why string, err error) {
	renewal := parsed.IsRenewal(&object.Spec)
	if !renewal && !csr.IsBootstrap(object.Spec.Username, r.BootstrapUsers) {
		return nil, fmt.Sprintf("the user %q is neither the agent that it asks for nor a bootstrap identity", object.Spec.Username), nil
	}
	// The caches first: who floods the hub with requests must not make it ask for each, nor must a cluster that is still
	// being accepted. What they miss comes as an event.
	var role *rbacv1.ClusterRole
	for _, reader := range []client.Reader{r.client, r.live} {
		cluster, role = &clusterv1.ManagedCluster{}, &rbacv1.ClusterRole{}
		if err := reader.Get(ctx, client.ObjectKey{Name: parsed.Cluster}, cluster); err != nil {
			return nil, "", ignoreGone(err)
		}
		if !cluster.Spec.HubAcceptsClient || !cluster.DeletionTimestamp.IsZero() {
			return nil, "", nil
		}
		if err := reader.Get(ctx, client.ObjectKey{Name: names.ClusterRole(parsed.Cluster)}, role); err != nil {
			return nil, "", ignoreGone(err)
		}
		if role.Annotations[names.AnnotationGranted] == "" || role.Annotations[names.AnnotationClusterUID] != string(cluster.UID) {
			return nil, "", nil
		}
	}
	if driver := role.Annotations[names.AnnotationDriver]; driver != csr.Name {
		return cluster, fmt.Sprintf("the cluster is accepted by the registration driver %q and needs no certificate", driver), nil
	}
	switch {
	case renewal:
		return cluster, "", nil
	case cluster.Annotations[names.AnnotationAgentKey] != "":
		if !parsed.HasKeyOf(cluster) {
			return cluster, "it is for another key than the one that the cluster was made with (" + names.AnnotationAgentKey + ")", nil
		}
	case meta.FindStatusCondition(cluster.Status.Conditions, names.ConditionJoined) != nil:
		return cluster, "the cluster has joined already, and does not say which key its agent has", nil
	}
	return cluster, "", nil
}

// ignoreGone leaves an error that comes again, such as that the hub's API is not served at the moment.
func ignoreGone(err error) error {
	if registration.IsGone(err) {
		return nil
	}
	return err
}

// approve approves the very request that was looked at: of a request only the labels and the conditions can change.
func (r *Reconciler) approve(ctx context.Context, object *certificatesv1.CertificateSigningRequest, cluster *clusterv1.ManagedCluster) error {
	approved := object.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved,
		Message:        "The certificate is for an agent of the accepted cluster " + cluster.Name,
		LastUpdateTime: metav1.Now(),
	})
	err := r.client.SubResource("approval").Update(ctx, approved)
	if registration.IsOutdated(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("approving the certificate request: %w", err)
	}
	r.recorder.Eventf(object, cluster, corev1.EventTypeNormal, "ManagedClusterCSRAutoApproved", "Approve",
		"The certificate request %s of the cluster %s is approved", object.Name, cluster.Name)
	return nil
}

// leave says why a request waits for an admin.
func (r *Reconciler) leave(object *certificatesv1.CertificateSigningRequest, cluster *clusterv1.ManagedCluster, why string) {
	note := fmt.Sprintf("The certificate request %s waits for an admin (kubectl certificate approve %[1]s): %s", object.Name, why)
	if len(note) > 1000 {
		note = note[:1000]
	}
	if cluster == nil {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, "ManagedClusterCSRPending", "Approve", "%s", note)
		return
	}
	r.recorder.Eventf(object, cluster, corev1.EventTypeWarning, "ManagedClusterCSRPending", "Approve", "%s", note)
}
