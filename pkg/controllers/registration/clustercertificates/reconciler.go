// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercertificates approves the certificate requests of the agents of clusters that are accepted and register by certificate: their
// first ones, and their renewals.
//
// A request is approved only if every part of it is known and right. Others are not denied: they may be for another program, and an admin may know
// more. The first certificate makes its holder an agent of the cluster, and users with a bootstrap token can request it. So the hub pins one key
// for each cluster, in the cluster's record, where its agent cannot write: the key in the annotation of the cluster, or the only one that was
// requested before it was accepted. A renewal by the agent itself moves the pin, and so does an admin who approves a request. Every other key waits
// for an admin.
package clustercertificates

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const (
	// reasonApproved is the reason of upstream.
	reasonApproved = "AutoApprovedByHubCSRApprovingController" // the hub has approved the certificate request by itself

	reporter = "clustercertificates"

	// openIndex finds the requests of a cluster that are pending or were approved.
	openIndex = "open"

	workers = 8
)

// Reconciler decides on one certificate request.
type Reconciler struct {
	Options
	// client reads from the caches, live from the API server: a certificate lasts longer than a stale cache.
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := errors.Join(AddIndexes(ctx, mgr.GetFieldIndexer()), kit.Expose(removed)); err != nil {
		return err
	}
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder(reporter), o)
	if err := r.setupWaiting(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(reporter).
		For(&certificatesv1.CertificateSigningRequest{}).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.requestsOf),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: recordChanged})).
		WithOptions(kit.Options(workers)).
		Complete(r)
}

// AddIndexes adds the indexes that the controller's client needs.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &certificatesv1.CertificateSigningRequest{}, openIndex, openOf); err != nil {
		return err
	}
	return indexer.IndexField(ctx, &certificatesv1.CertificateSigningRequest{}, pendingIndex, pendingOf)
}

// New returns a Reconciler for a process without a manager.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, o Options) *Reconciler {
	return &Reconciler{Options: o, client: c, live: live, recorder: recorder}
}

func openOf(obj client.Object) []string {
	request := obj.(*certificatesv1.CertificateSigningRequest)
	if cluster := request.Labels[registration.ClusterNameLabel]; cluster != "" && isOpen(request) {
		return []string{cluster}
	}
	return nil
}

// clusterChanged passes changes that a decision depends on.
func clusterChanged(e event.UpdateEvent) bool {
	before, now := e.ObjectOld.(*clusterv1.ManagedCluster), e.ObjectNew.(*clusterv1.ManagedCluster)
	return before.UID != now.UID || before.Spec.HubAcceptsClient != now.Spec.HubAcceptsClient
}

func recordChanged(e event.UpdateEvent) bool {
	before, now := record.Of(e.ObjectOld.(*corev1.ConfigMap)), record.Of(e.ObjectNew.(*corev1.ConfigMap))
	return !before.Granted.Equal(now.Granted) || before.Driver != now.Driver || before.UID != now.UID || before.Key != now.Key ||
		before.Requesters != now.Requesters
}

// requestsOf maps a cluster, or an object with its label, to the requests of its agents that are pending or were approved.
func (r *Reconciler) requestsOf(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster := obj.GetName()
	if _, ok := obj.(*clusterv1.ManagedCluster); !ok {
		cluster = obj.GetLabels()[registration.ClusterNameLabel]
	}
	return kit.Requests(ctx, r.client, &certificatesv1.CertificateSigningRequestList{}, client.MatchingFields{openIndex: cluster})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	if !isOpen(object) {
		return reconcile.Result{}, nil
	}
	if agentcsr.IsPending(object) {
		if gone, err := r.bound(ctx, object); gone || err != nil {
			return reconcile.Result{}, err
		}
	}
	parsed, err := agentcsr.Parse(object)
	switch {
	case errors.Is(err, agentcsr.ErrOther):
		return reconcile.Result{}, nil
	case !agentcsr.IsPending(object):
		if err != nil {
			return reconcile.Result{}, nil // an admin decided so, and it makes no agent of the cluster
		}
		return reconcile.Result{}, r.follow(ctx, object, parsed)
	case err != nil:
		r.recordWaiting(object, nil, err.Error())
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.review(ctx, object, parsed)
}

// review approves or denies a pending request, or leaves it to an admin.
func (r *Reconciler) review(ctx context.Context, object *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request) error {
	if why := r.checkRequester(object, parsed); why != "" {
		r.recordWaiting(object, nil, why)
		return nil
	}
	// The caches first, so that neither a flood of requests nor a cluster that is still being accepted causes live reads. Changes that they miss
	// arrive as events.
	var s *standing
	var d decision
	for _, from := range []source{r.cache(), r.server()} {
		var err error
		s, err = from.standing(ctx, parsed.Cluster)
		if err != nil || s == nil || !s.granted() {
			return err // without one, the cluster is not accepted yet
		}
		d, err = r.decide(object, parsed, s)
		if err != nil {
			return err
		}
		if d.why == whyUnasked {
			break // the live decision takes all of the cluster's requests, of which there may be many
		}
	}
	if d.why == "" && d.pin == nil && !parsed.IsRenewal(&object.Spec) {
		var err error
		d, err = r.confirm(ctx, parsed.Cluster, s)
		if err != nil {
			return err
		}
	}
	if d.pin != nil {
		// Before the approval: if this process ends in between, the next one has the pin, and approves no other key.
		if err := r.pin(ctx, s, *d.pin); err != nil {
			return err
		}
	}
	if d.why != "" {
		r.recordWaiting(object, s.cluster, d.why)
		return nil
	}
	return r.approve(ctx, object, s.cluster)
}

// follow pins the key of a request that an admin has approved.
func (r *Reconciler) follow(ctx context.Context, object *certificatesv1.CertificateSigningRequest, parsed *agentcsr.Request) error {
	approval := approvalOf(object, parsed)
	var s *standing
	for _, from := range []source{r.cache(), r.server()} {
		var err error
		s, err = from.standing(ctx, parsed.Cluster)
		if err != nil || s == nil || !s.byCertificate() || !s.supersedes(approval) {
			return err
		}
	}
	return r.pin(ctx, s, approval)
}

// approve approves exactly the request that was checked: only the labels and the conditions of a request can change.
func (r *Reconciler) approve(ctx context.Context, object *certificatesv1.CertificateSigningRequest, cluster *clusterv1.ManagedCluster) error {
	approved := object.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved,
		Message:        "The certificate is for an agent of the accepted cluster " + cluster.Name,
		LastUpdateTime: metav1.Now(),
	})
	err := r.client.SubResource("approval").Update(ctx, approved)
	if kit.IsStale(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("approving the certificate request: %w", err)
	}
	r.recorder.Eventf(object, cluster, corev1.EventTypeNormal, "ManagedClusterCSRAutoApproved", "Approve",
		"The certificate request %s of the cluster %s is approved", object.Name, cluster.Name)
	return nil
}

// recordWaiting records why a request waits for an admin.
func (r *Reconciler) recordWaiting(object *certificatesv1.CertificateSigningRequest, cluster *clusterv1.ManagedCluster, why string) {
	note := kit.Message(fmt.Sprintf("The certificate request %s waits for an admin (kubectl certificate approve %[1]s): %s", object.Name, why))
	if cluster == nil {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, "ManagedClusterCSRPending", "Approve", "%s", note)
		return
	}
	r.recorder.Eventf(object, cluster, corev1.EventTypeWarning, "ManagedClusterCSRPending", "Approve", "%s", note)
}
