// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/test/await"
)

// lent is a request with access by its status and Secret, to a cluster that its provider may withdraw.
type lent struct {
	*Reconciler
	t        *testing.T
	ar       *v1alpha1.AccessRequest
	answer   *corev1.Secret
	cluster  *v1alpha1.Cluster
	provider *lender
	told     *events.FakeRecorder
}

func newLent(t *testing.T) *lent {
	l := &lent{t: t, ar: &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "ann", UID: "1", Generation: 1, Finalizers: []string{"e.p.clusters.openmcp.cloud/accessrequest"},
		Labels: map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.c"},
	}}}
	l.ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	l.ar.Spec.Token = &v1alpha1.TokenConfig{}
	l.ar.Status.Phase, l.ar.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, 1
	l.ar.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: "ann.kubeconfig"}
	for _, about := range []string{clusterprovider.ConditionAccess, clusterprovider.ConditionRoles} {
		hub.SetCondition(&l.ar.Status.Status, 1, metav1.Condition{Type: about, Status: metav1.ConditionTrue})
	}
	l.cluster = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	l.cluster.Spec.Profile, l.cluster.Status.Phase = "e.p.c", v1alpha1.StatusPhaseReady // the caches are empty yet
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "e.p.c"}}
	profile.Spec.ProviderRef.Name = "p"
	own, now := hub.Identity{Name: "p", Environment: "e"}, time.Now()
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(l.ar, l.cluster, profile).WithStatusSubresource(l.ar, l.cluster).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	l.provider, l.told = &lender{}, events.NewFakeRecorder(10)
	l.Reconciler = New(own, l.provider, server, server, l.told)
	token := answer.Token{Value: "t", Created: now, Expires: now.Add(time.Hour), Until: now.Add(time.Hour)}
	if err := l.answers.Token(t.Context(), l.ar, &rest.Config{}, token); err != nil {
		t.Fatal(err)
	}
	l.ar, l.answer = l.now(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: hub.SecretName("ann")}}
	return l
}

// now returns the current request on the hub.
func (l *lent) now() *v1alpha1.AccessRequest {
	l.t.Helper()
	ar := &v1alpha1.AccessRequest{}
	if err := l.client.Get(l.t.Context(), client.ObjectKeyFromObject(l.ar), ar); err != nil {
		l.t.Fatal(err)
	}
	return ar
}

// changes updates the request.
func (l *lent) changes(change func(ar *v1alpha1.AccessRequest)) {
	l.t.Helper()
	ar := l.now()
	change(ar)
	if err := l.client.Status().Update(l.t.Context(), ar); err != nil {
		l.t.Fatal(err)
	}
}

// withdrawnFrom marks a request's access as revoked because the cluster is not its Cluster's, with a failure or "".
func withdrawnFrom(ar *v1alpha1.AccessRequest, failure string) {
	ar.Status.Phase, ar.Status.SecretRef = v1alpha1.REQUEST_PENDING, nil
	hub.SetCondition(&ar.Status.Status, 1, metav1.Condition{
		Type: clusterprovider.ConditionAccess, Status: metav1.ConditionFalse, Reason: hub.ReasonClusterNotHeld,
		Message: "the Cluster 'teams/blue': it is not yours" + failure,
	})
}

func (l *lent) looks() (reconcile.Result, error) {
	return l.Reconcile(l.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l.ar)})
}

// hasSecret reports whether the Secret with the access of the request exists.
func (l *lent) hasSecret() bool {
	l.t.Helper()
	err := l.client.Get(l.t.Context(), client.ObjectKeyFromObject(l.answer), &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	return err == nil
}

// TestWithdraw_DeletesSecretOfUnwrittenStatus: a grant whose status could not be written has left the Secret of a request whose
// status reports no access.
func TestWithdraw_DeletesSecretOfUnwrittenStatus(t *testing.T) {
	l := newLent(t)
	l.provider.why = "it is not yours"
	l.changes(func(ar *v1alpha1.AccessRequest) { withdrawnFrom(ar, "") })
	if result, err := l.looks(); err != nil || result.RequeueAfter != clusterprovider.ResyncInterval {
		t.Errorf("%+v, %v", result, err)
	}
	if l.hasSecret() {
		t.Error("the Secret remains")
	}
}

// TestWithdraw_RetainsAccessOnReadError: one failed read of who has the cluster must not end access that is as desired, nor issue new tokens.
func TestWithdraw_RetainsAccessOnReadError(t *testing.T) {
	l := newLent(t)
	l.provider.asked = errors.New("the Secret cannot be read")
	if _, err := l.looks(); !errors.Is(err, l.provider.asked) {
		t.Errorf("it is not tried again: %v", err)
	}
	if now := l.now(); now.ResourceVersion != l.ar.ResourceVersion || len(l.told.Events) > 0 {
		t.Errorf("the status is %+v, and %d events tell of it", now.Status, len(l.told.Events))
	}
	// Without its Secret it would have to be granted.
	if err := l.client.Delete(t.Context(), l.answer); err != nil {
		t.Fatal(err)
	}
	if _, err := l.looks(); !errors.Is(err, l.provider.asked) || l.hasSecret() || l.now().Status.IsGranted() {
		t.Errorf("access is given: %v, %+v", err, l.now().Status)
	}
}

// TestWithdraw_RequestWithoutAccessCanBeDeleted: the former cluster of a request without remaining objects need not respond for the
// request to be deleted.
func TestWithdraw_RequestWithoutAccessCanBeDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		before func(ar *v1alpha1.AccessRequest)
		gone   bool
	}{
		"no access remains":          {why: "it is not yours", before: func(ar *v1alpha1.AccessRequest) { withdrawnFrom(ar, "") }, gone: true},
		"access may remain":          {why: "it is not yours", before: func(ar *v1alpha1.AccessRequest) { withdrawnFrom(ar, "; revoking access: no") }},
		"the cluster came back":      {before: func(ar *v1alpha1.AccessRequest) { withdrawnFrom(ar, "") }},
		"it does not know of it yet": {why: "it is not yours", before: func(*v1alpha1.AccessRequest) {}},
		"its Secret is by the status there": {why: "it is not yours", before: func(ar *v1alpha1.AccessRequest) {
			answer := ar.Status.SecretRef
			withdrawnFrom(ar, "")
			ar.Status.SecretRef = answer
		}},
	} {
		l := newLent(t)
		l.provider.why = c.why
		l.changes(c.before)
		if err := l.client.Delete(t.Context(), l.ar); err != nil {
			t.Fatal(err)
		}
		_, err := l.looks()
		left := l.client.Get(t.Context(), client.ObjectKeyFromObject(l.ar), l.ar)
		if gone := apierrors.IsNotFound(left); gone != c.gone || gone != (err == nil) {
			t.Errorf("%s: gone: %v, %v, %v", name, gone, err, left)
		}
	}
}

// TestWithdraw_DoesNotBlockWorkers: a worker serves all clusters: it does not wait for one that is being withdrawn, or does not respond.
func TestWithdraw_DoesNotBlockWorkers(t *testing.T) {
	l := newLent(t)
	ended, _ := l.Giving.End(l.cluster.UID)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if result, err := l.looks(); err != nil || result.RequeueAfter != hub.RetryInterval {
			t.Errorf("%+v, %v", result, err)
		}
	}()
	select {
	case <-looked:
	case <-time.After(await.Limit):
		t.Error("it waits until the cluster has been taken")
	}
	if now := l.now(); now.ResourceVersion != l.ar.ResourceVersion {
		t.Errorf("the status is %+v", now.Status)
	}
	ended()
	<-looked

	l.Reconciler.provider = reached{}
	config, err := l.connect(t.Context(), l.cluster)
	if err != nil || config.Timeout != answerTimeout {
		t.Errorf("a cluster is waited for %s, %v", config.Timeout, err)
	}
}

// TestWithdraw_ReturningClusterIsGrantedAgain: if a Cluster gets its cluster back after the access to it was taken, or some of it, no
// request may continue to report access.
func TestWithdraw_ReturningClusterIsGrantedAgain(t *testing.T) {
	for name, change := range map[string]func(ar *v1alpha1.AccessRequest){
		"granted": func(*v1alpha1.AccessRequest) {},
		"ignored": func(ar *v1alpha1.AccessRequest) {
			ar.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
		},
		"not prepared": func(ar *v1alpha1.AccessRequest) { ar.Labels = nil },
		"nor held":     func(ar *v1alpha1.AccessRequest) { ar.Labels, ar.Finalizers = nil, nil },
		"held, without word": func(ar *v1alpha1.AccessRequest) {
			ar.Status.Phase, ar.Status.Conditions, ar.Status.SecretRef = v1alpha1.REQUEST_PENDING, nil, nil
		},
	} {
		l := newLent(t)
		before := l.now().DeepCopy()
		change(l.ar)
		if err := l.client.Update(t.Context(), l.ar.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		l.changes(func(ar *v1alpha1.AccessRequest) { ar.Status = l.ar.Status })
		if err := l.RevokeAll(t.Context(), l.cluster); err == nil { // it is interrupted
			t.Fatal("the cluster answers")
		}
		// The Cluster has its cluster again, and its provider reconciles the request like any other.
		said := meta.FindStatusCondition(l.now().Status.Conditions, clusterprovider.ConditionAccess)
		if l.now().Status.IsGranted() || said == nil || said.Reason != hub.ReasonClusterNotReady {
			t.Errorf("%s: it has access in its status: %+v", name, l.now().Status)
		}
		now := l.now()
		now.Labels, now.Finalizers, now.Annotations = before.Labels, before.Finalizers, nil
		if err := l.client.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if _, err := l.looks(); err == nil || !strings.Contains(err.Error(), "reaching the Cluster") {
			t.Errorf("%s: nothing is given to it again: %v", name, err)
		}
	}
}

// TestDelete_DeniedRequestHasNoRolesCondition: a request without access has no condition about roles.
func TestDelete_DeniedRequestHasNoRolesCondition(t *testing.T) {
	l := newLent(t)
	if err := l.client.Delete(t.Context(), l.cluster); err != nil {
		t.Fatal(err)
	}
	l.changes(func(ar *v1alpha1.AccessRequest) { ar.Status.Phase = v1alpha1.REQUEST_DENIED })
	if _, err := l.looks(); err != nil {
		t.Fatal(err)
	}
	now := l.now()
	said := meta.FindStatusCondition(now.Status.Conditions, clusterprovider.ConditionAccess)
	if said == nil || said.Reason != hub.ReasonDenied || meta.FindStatusCondition(now.Status.Conditions, clusterprovider.ConditionRoles) != nil {
		t.Errorf("%+v", now.Status)
	}
}

// lender is a provider that withdraws its cluster.
type lender struct {
	clusterprovider.Provider
	why   string
	asked error
	// host of its cluster, if that responds.
	host string
	// reached is called when its cluster is reached.
	reached func(ctx context.Context)
}

func (l *lender) Withdrawn(context.Context, *v1alpha1.Cluster) (string, error) { return l.why, l.asked }

func (l *lender) Connect(ctx context.Context, _ *v1alpha1.Cluster) (*rest.Config, error) {
	if l.reached != nil {
		l.reached(ctx)
	}
	if l.host != "" {
		return &rest.Config{Host: l.host}, nil
	}
	return nil, errors.New("the cluster does not respond")
}

func TestWithdraw_RetriesAndReportsUntilDone(t *testing.T) {
	l := newLent(t)
	server, r, ar, answer, provider, told := l.client, l.Reconciler, l.ar, l.answer, l.provider, l.told
	provider.why = "it is not yours"
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ar)}
	if _, err := r.Reconcile(t.Context(), name); err == nil {
		t.Error("a cluster that does not respond is not tried again")
	}
	if err := server.Get(t.Context(), name.NamespacedName, ar); err != nil {
		t.Fatal(err)
	}
	said := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	if ar.Status.Phase != v1alpha1.REQUEST_PENDING || ar.Status.SecretRef == nil || len(ar.Status.Conditions) != 1 ||
		said.Reason != hub.ReasonClusterNotHeld || !strings.Contains(said.Message, "the Cluster 'teams/blue': it is not yours; revoking access: ") {
		t.Errorf("%+v", ar.Status)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(answer), answer); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Secret is left: %v", err)
	}
	if len(told.Events) != 1 {
		t.Errorf("%d events", len(told.Events))
	}
	if _, err := r.Reconcile(t.Context(), name); err == nil || len(told.Events) != 1 {
		t.Errorf("the second time: %v, %d events", err, len(told.Events))
	}

	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"items": []}`))
	}))
	defer empty.Close()
	for _, host := range []string{empty.URL, ""} { // once nothing is left, it is not contacted
		provider.host = host
		if result, err := r.Reconcile(t.Context(), name); err != nil || result.RequeueAfter != clusterprovider.ResyncInterval {
			t.Errorf("when it has answered, by %q: %+v, %v", host, result, err)
		}
	}
	ar = l.now()
	said = meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	if ar.Status.Phase != v1alpha1.REQUEST_PENDING || ar.Status.SecretRef != nil || said.Message != "the Cluster 'teams/blue': it is not yours" {
		t.Errorf("when nothing is left: %+v", ar.Status)
	}

	// While it is unknown, nothing is granted and nothing revoked.
	provider.asked = errors.New("the Secret cannot be read")
	before := slices.Clone(ar.Finalizers)
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "still has its cluster") {
		t.Errorf("%v", err)
	}
	if err := server.Get(t.Context(), name.NamespacedName, ar); err != nil || ar.Status.IsGranted() || !slices.Equal(before, ar.Finalizers) {
		t.Errorf("%v: %+v", err, ar.Status)
	}
}
