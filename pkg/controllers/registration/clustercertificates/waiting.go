// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"context"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// noticeAfter is the delay of the check of a cluster after a change: most requests are decided within it.
const noticeAfter = time.Second

// waiting sets a condition on a cluster whose request waits for an admin. Reconciler records the events about the requests.
type waiting struct{ *Reconciler }

func (r *Reconciler) setupWaiting(mgr ctrl.Manager) error {
	ofCluster := handler.EnqueueRequestsFromMapFunc(kit.ByLabel(registration.ClusterNameLabel))
	return ctrl.NewControllerManagedBy(mgr).
		Named(reporter+"-waiting").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: clusterChanged})).
		Watches(&certificatesv1.CertificateSigningRequest{}, ofCluster).
		Watches(&corev1.ConfigMap{}, ofCluster,
			builder.WithPredicates(predicate.Funcs{UpdateFunc: recordChanged})).
		WithOptions(kit.Options(workers)).
		Complete(waiting{r})
}

// Reconcile implements reconcile.Reconciler.
func (w waiting) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := w.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	why, young, err := w.why(ctx, cluster)
	if err != nil || young {
		return reconcile.Result{RequeueAfter: noticeAfter}, err
	}
	condition := metav1.Condition{
		Type: registration.ConditionRequestWaits, Status: metav1.ConditionTrue, Reason: registration.ReasonRequestWaits, Message: why,
		ObservedGeneration: cluster.Generation,
	}
	before := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionRequestWaits)
	if why == "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, registration.ReasonNoRequestWaits
		condition.Message = "No certificate request of the cluster waits for an admin"
		if before == nil {
			return reconcile.Result{}, nil
		}
	}
	if before != nil && before.Status == condition.Status && before.Message == condition.Message {
		return reconcile.Result{}, nil
	}
	_, err = kit.PatchStatus(ctx, w.client, cluster, func(c *clusterv1.ManagedCluster) {
		meta.SetStatusCondition(&c.Status.Conditions, condition)
	})
	if kit.IsStale(err) {
		return reconcile.Result{RequeueAfter: noticeAfter}, nil
	}
	if err == nil && why != "" {
		w.recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "ManagedClusterCSRPending", "Approve", "%s", why)
	}
	return reconcile.Result{}, err
}

// why returns a message about the oldest request that an admin must decide on, or "". A request that is younger than noticeAfter may be decided
// soon.
func (w waiting) why(ctx context.Context, cluster *clusterv1.ManagedCluster) (why string, young bool, err error) {
	s, err := w.cache().standing(ctx, cluster.Name)
	if err != nil || s == nil || !s.granted() || !s.byCertificate() {
		return "", false, err
	}
	requests, err := s.requests()
	if err != nil {
		return "", false, err
	}
	var pending []*certificatesv1.CertificateSigningRequest
	for i := range requests {
		if agentcsr.IsPending(&requests[i]) {
			pending = append(pending, &requests[i])
		}
	}
	slices.SortFunc(pending, compareAge)
	for _, request := range pending {
		parsed, err := agentcsr.Parse(request)
		if err != nil || w.checkRequester(request, parsed) != "" {
			continue // it may not be the cluster's
		}
		d, err := w.decide(request, parsed, s)
		if err != nil {
			return "", false, err
		}
		if d.why == "" || d.pin != nil {
			continue // the other controller is about to act on it
		}
		if time.Since(request.CreationTimestamp.Time) < noticeAfter {
			return "", true, nil
		}
		return fmt.Sprintf("Certificate request %s waits for an admin: %s. kubectl hub accept --clusters %s shows all that wait, "+
			"and approves the one that --csr names", request.Name, d.why, cluster.Name), false, nil
	}
	return "", false, nil
}
