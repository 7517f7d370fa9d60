// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/leftovers"
)

// lender is a provider that takes its cluster back.
type lender struct {
	clusterprovider.Provider
	why   string
	asked error
	// former had the cluster before, and is gone.
	former types.UID
	// host of its cluster, if that answers.
	host string
	// reached is what is done when its cluster is.
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
	return nil, errors.New("the cluster does not answer")
}

func TestWithdraw_NotWhileAccessIsBeingGivenNorBeforeItIsTakenBack(t *testing.T) {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(cluster).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	deleted := cluster.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"e.p.clusters.openmcp.cloud/cluster"}
	provider, released := &lender{}, 0
	r := &clusters{Identity: hub.Identity{Name: "p", Environment: "e"}, provider: provider, client: server, giving: &giving{}, leftovers: leftovers.New(hub.Identity{}, provider, server, server)}
	state := clusterprovider.State{Withdrawn: true, Release: func(context.Context) error { released++; return nil }}

	given, _ := r.giving.begin(cluster.UID)
	if result, err := r.withdraw(t.Context(), cluster, state); err != nil || result.RequeueAfter != hub.RetryInterval || released > 0 {
		t.Errorf("while somebody gives access: %+v, %v, released %d times", result, err, released)
	}
	if result, err := r.remove(t.Context(), deleted, clusterprovider.Profile{}); err != nil || result.RequeueAfter != hub.RetryInterval {
		t.Errorf("a Cluster is let go while somebody gives access: %+v, %v", result, err)
	}
	given()
	given()
	reached := 0
	provider.reached = func(ctx context.Context) {
		reached++
		if _, ok := ctx.Deadline(); !ok {
			t.Error("it may take for ever, in which nobody is given access")
		}
		if _, ok := r.giving.begin(cluster.UID); ok {
			t.Error("access is given meanwhile")
		}
	}
	if _, err := r.withdraw(t.Context(), cluster, state); err == nil || released > 0 || reached != 1 {
		t.Errorf("while the cluster does not answer: %v, released %d times, asked %d times", err, released, reached)
	}
}

// Ensure says what the provider of a cluster says that is withdrawn.
func (l *lender) Ensure(context.Context, *v1alpha1.Cluster, clusterprovider.Profile) (clusterprovider.State, error) {
	return clusterprovider.State{Withdrawn: l.why != "", Former: l.former, Release: func(context.Context) error { return nil }}, nil
}

// A Cluster whose finalizer was removed by force has left all access in its cluster, which is not handed on with it.
func TestWithdraw_BeforeTheNextOneHasTheClusterOfOneThatIsGone(t *testing.T) {
	l := newLent(t)
	l.provider.former = "gone"
	r := &clusters{Identity: l.Identity, provider: l.provider, client: l.client, giving: l.giving, leftovers: l.leftovers, events: l.told}
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l.cluster)}
	given, _ := l.giving.begin("gone")
	if result, err := r.Reconcile(t.Context(), name); err != nil || result.RequeueAfter != hub.RetryInterval {
		t.Errorf("while somebody gives access for it: %+v, %v", result, err)
	}
	given()
	of := types.UID("")
	l.provider.reached = func(context.Context) {
		if _, ok := l.giving.begin("gone"); !ok {
			of = "gone"
		}
	}
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "taking back the access") || of != "gone" {
		t.Errorf("what the one before had is not taken back: %v", err)
	}
	// The requests that it gave access for may be for a Cluster of the same name.
	if l.now().Status.IsGranted() {
		t.Errorf("%+v", l.now().Status)
	}
}

// Who may annotate a Cluster must not keep its cluster by that.
func TestWithdraw_AlsoFromAClusterThatIsIgnored(t *testing.T) {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "blue", UID: "blue-1", Annotations: map[string]string{v1alpha1.OperationAnnotation: "ignore"},
	}}
	cluster.Spec.Profile = "e.p.c"
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "e.p.c"}}
	profile.Spec.ProviderRef.Name = "p"
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(cluster, profile).WithStatusSubresource(cluster).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	own, provider := hub.Identity{Name: "p", Environment: "e"}, &lender{}
	r := &clusters{Identity: own, provider: provider, client: server, giving: &giving{}, leftovers: leftovers.New(own, provider, server, server)}
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}
	if result, err := r.Reconcile(t.Context(), name); err != nil || result.RequeueAfter == 0 {
		t.Errorf("one that has its cluster: %+v, %v", result, err)
	}
	provider.why = "it is not yours"
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "taking back the access") {
		t.Errorf("nothing is taken back: %v", err)
	}
	if err := server.Get(t.Context(), name.NamespacedName, cluster); err != nil || len(cluster.Finalizers)+len(cluster.Status.Conditions) > 0 {
		t.Errorf("what is to be ignored is changed: %+v, %v", cluster, err)
	}
}

func TestWithdraw_ARequestSaysSoAndIsTriedAgainUntilNothingIsLeft(t *testing.T) {
	l := newLent(t)
	server, r, ar, answer, provider, told := l.client, l.access, l.ar, l.answer, l.provider, l.told
	provider.why = "it is not yours"
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(ar)}
	if _, err := r.Reconcile(t.Context(), name); err == nil {
		t.Error("a cluster that does not answer is not tried again")
	}
	if err := server.Get(t.Context(), name.NamespacedName, ar); err != nil {
		t.Fatal(err)
	}
	said := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	if ar.Status.Phase != v1alpha1.REQUEST_PENDING || ar.Status.SecretRef == nil || len(ar.Status.Conditions) != 1 ||
		said.Reason != hub.ReasonClusterNotHeld || !strings.Contains(said.Message, "the Cluster 'teams/blue': it is not yours; taking access back: ") {
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
	for _, host := range []string{empty.URL, ""} { // once nothing is left, it is not asked
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

	// While nobody knows, nothing is given and nothing taken.
	provider.asked = errors.New("the Secret cannot be read")
	before := slices.Clone(ar.Finalizers)
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "still has its cluster") {
		t.Errorf("%v", err)
	}
	if err := server.Get(t.Context(), name.NamespacedName, ar); err != nil || ar.Status.IsGranted() || !slices.Equal(before, ar.Finalizers) {
		t.Errorf("%v: %+v", err, ar.Status)
	}
}
