// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/leftovers"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// refusing is a hub with the Cluster blue, whose rights are in in.
type refusing struct {
	*Reconciler
	t       *testing.T
	in      client.Client
	truster *truster
	cluster *v1alpha1.Cluster
}

func newRefusing(t *testing.T, requests ...client.Object) *refusing {
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	cluster.Status.Phase = v1alpha1.StatusPhaseReady
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(append(requests, cluster)...).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	trusts := &truster{}
	return &refusing{
		Reconciler: New(hub.Identity{Name: "p", Environment: "e"}, trusts, server, server, &events.FakeRecorder{}), t: t, truster: trusts, cluster: cluster,
		in: fake.NewClientBuilder().WithScheme(rights.Scheme).Build(),
	}
}

// gives grants a request its access, including its status.
func (r *refusing) gives(ar *v1alpha1.AccessRequest) error {
	ctx := context.WithoutCancel(r.t.Context())
	r.reach = func(_ *rest.Config, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) (*target.Target, error) {
		return &target.Target{Client: r.in, Owner: apply.Owner{Labels: r.AccessLabels(ar), Origin: trust.Origin(r.Identity, ar, cluster)}}, nil
	}
	s := r.looksClosely(ctx, ar, r.cluster)
	_, d, err := r.applyDecision(ctx, s, s.decideGrant(decision{}))
	return cmp.Or(err, d.why)
}

// looksClosely returns what is observed of a request for a Cluster, independent of the caches.
func (r *Reconciler) looksClosely(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) *observation {
	s := r.observe(ctx, ar)
	s.cluster, s.noCluster = cluster, nil
	r.readMore(ctx, s)()
	return s
}

// trusted returns the issuers that the cluster trusts.
func (r *refusing) trusted() []string { return r.truster.asked }

// restarts forgets all state that is in no object.
func (r *refusing) restarts() { r.issuers = trust.New(r.Identity, r.truster, r.client) }

// bindings returns the number of bindings in the cluster.
func (r *refusing) bindings() int {
	r.t.Helper()
	list := &rbacv1.ClusterRoleBindingList{}
	if err := r.in.List(r.t.Context(), list); err != nil {
		r.t.Fatal(err)
	}
	return len(list.Items)
}

func byIssuer(name, issuer string, prefix *string, role string) *v1alpha1.AccessRequest {
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: name, UID: types.UID(name), Generation: 1, Finalizers: []string{"e.p.clusters.openmcp.cloud/accessrequest"},
		Labels: map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.c"},
	}}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	ar.Spec.OIDC = &v1alpha1.OIDCConfig{OIDCProviderConfig: v1alpha1.OIDCProviderConfig{
		Name: name, Issuer: issuer, UsernamePrefix: prefix,
		RoleBindings: []v1alpha1.RoleBindings{{
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann"}}, RoleRefs: []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: role}},
		}},
	}}
	return ar
}

// TestRefused_OtherRequestDoesNotAddIssuer: the issuer of a rejected request, which has a finalizer, must not become trusted with the next one.
func TestRefused_OtherRequestDoesNotAddIssuer(t *testing.T) {
	evil, good := byIssuer("evil", "https://evil", new(""), "view"), byIssuer("good", "https://good", nil, "view")
	r := newRefusing(t, evil, good)
	if err := r.gives(evil); hub.ReasonOf(err, "") != hub.ReasonOIDCPrefixRefused {
		t.Fatalf("evil: %v", err)
	}
	if slices.Contains(r.trusted(), "https://evil") {
		t.Errorf("what is refused is trusted: %v", r.trusted())
	}
	if err := r.gives(good); err != nil {
		t.Fatalf("good: %v", err)
	}
	r.changed().Delete(event.DeleteEvent{Object: good})
	if err := r.issuers.Again(t.Context(), r.cluster); err != nil || len(r.trusted()) != 0 {
		t.Errorf("the state of a request remains after its forced deletion: %v, %v", r.trusted(), err)
	}
	if err := r.gives(good); err != nil {
		t.Fatalf("good: %v", err)
	}
	if got := r.trusted(); !slices.Equal(got, []string{"https://good"}) {
		t.Errorf("after another's grant the cluster trusts %v", got)
	}
	// The end of another, after a restart.
	r.restarts()
	trust.Record(good, true)
	good.DeletionTimestamp = new(metav1.Now())
	if err := r.issuers.Revoke(t.Context(), good, r.cluster); err != nil || len(r.truster.asked) != 0 {
		t.Errorf("after another's end the cluster trusts %v, %v", r.trusted(), err)
	}
}

func TestRefused_RevokesFormerAccess(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "cluster-admin")
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	trust.Record(ar, true)
	meta.SetStatusCondition(&ar.Status.Conditions, metav1.Condition{Type: clusterprovider.ConditionAccess, Status: "True", Reason: "Granted", ObservedGeneration: 1})
	if r.bindings() != 1 || !slices.Equal(r.trusted(), []string{"https://corp"}) {
		t.Fatalf("%d bindings, trusts %v", r.bindings(), r.trusted())
	}
	ar.Generation, ar.Spec.OIDC.UsernamePrefix = 2, new("")
	ar.Spec.OIDC.RoleBindings[0].RoleRefs[0].Name = "view"
	if err := r.gives(ar); hub.ReasonOf(err, "") != hub.ReasonOIDCPrefixRefused {
		t.Errorf("%v", err)
	}
	if r.bindings() != 0 || len(r.truster.asked) != 0 {
		t.Errorf("%d bindings remain, and the cluster trusts %v", r.bindings(), r.trusted())
	}
}

// TestRefused_ClaimsAndPrefixesAreDistinct: the status text for an issuer must not equal the text for another way to accept its tokens: claims can have
// any name, and the operator of the issuer controls the content of its tokens.
func TestRefused_ClaimsAndPrefixesAreDistinct(t *testing.T) {
	const between = ` with the prefix "x:" names the user, `
	ar := byIssuer("evil", "https://evil", new("x:"), "view")
	oidc := ar.Spec.OIDC
	oidc.UsernameClaim, oidc.GroupsPrefix, oidc.GroupsClaim = new("a"), new("y:"), new(`b with the prefix "" names the user, c`)
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	trust.Record(ar, true)
	for name, change := range map[string]func(){
		"the claims":          func() { oidc.UsernameClaim, oidc.GroupsClaim = new("a"+between+"b"), new("c") },
		"the claims, quoted":  func() { oidc.UsernameClaim, oidc.GroupsClaim = new(`"a"`+between+`"b"`), new(`"c"`) },
		"the claims, escaped": func() { oidc.UsernameClaim, oidc.GroupsClaim = new(`a\"`+between+`\"b`), new("c") },
	} {
		ar.Generation++
		oidc.UsernamePrefix = new("")
		change()
		if err := r.gives(ar); hub.ReasonOf(err, "") != hub.ReasonOIDCPrefixRefused || len(r.truster.asked) > 0 {
			t.Errorf("%s: %v, and the cluster trusts %v", name, err, r.trusted())
		}
	}
}

// TestRevoke_RightsDespiteIssuerError: the rights of an ending request are deleted even if the trust of a cluster cannot be changed.
func TestRevoke_RightsDespiteIssuerError(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "cluster-admin")
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	if r.bindings() != 1 {
		t.Fatalf("%d bindings", r.bindings())
	}
	// The trust of the cluster changes only after the rights for the names of its issuers are deleted.
	r.truster.before = func() {
		if n := r.bindings(); n > 0 {
			t.Errorf("%d bindings are there when its names can become another issuer's", n)
		}
	}
	ar.DeletionTimestamp = new(metav1.Now())
	r.truster.refuses = errors.New("it does not load its configuration")
	to := &target.Target{Client: r.in, Owner: apply.Owner{Labels: r.AccessLabels(ar)}}
	if err := r.revoke(t.Context(), ar, r.cluster, to); err == nil {
		t.Error("it is let go though its issuer may be trusted")
	}
	if n := r.bindings(); n != 0 {
		t.Errorf("%d bindings remain", n)
	}
}

// TestGrantOIDC_NewIssuerRevokesOldRights: after a change of the issuer, others may use the names of the previous one: these names have no
// rights, even if the rights for the new names cannot be granted.
func TestGrantOIDC_NewIssuerRevokesOldRights(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "cluster-admin")
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	trust.Record(ar, true)
	ar.Generation, ar.Spec.OIDC.Issuer, ar.Spec.OIDC.Name = 2, "https://new", "new"
	r.truster.before = func() {
		if n := r.bindings(); n > 0 {
			t.Errorf("%d bindings are there when its names can become another issuer's", n)
		}
	}
	fails := errors.New("not now")
	r.in = interceptor.NewClient(r.in.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return fails },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return fails },
	})
	if err := r.gives(ar); !errors.Is(err, fails) {
		t.Fatal(err)
	}
	if n := r.bindings(); n != 0 {
		t.Errorf("%d bindings remain", n)
	}
}

// TestUntrust_IssuerIsRemovedWithRequest: a request that has changed to a token leaves no issuer trusted, whatever the requester does to its
// Secret, and whether it got the token before it was deleted.
func TestUntrust_IssuerIsRemovedWithRequest(t *testing.T) {
	for name, attack := range map[string]func(r *refusing, ar *v1alpha1.AccessRequest) error{
		"its Secret is gone": func(r *refusing, ar *v1alpha1.AccessRequest) error {
			return r.gives(ar)
		},
		"the token cannot be given, and the request is deleted": func(r *refusing, ar *v1alpha1.AccessRequest) error {
			works, fails := r.in, errors.New("not now")
			r.in = interceptor.NewClient(r.in.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return fails },
			})
			for range 2 {
				if err := r.gives(ar); !errors.Is(err, fails) {
					return fmt.Errorf("it is given: %w", err)
				}
				trust.Record(ar, false)
			}
			ar.DeletionTimestamp = new(metav1.Now())
			return r.revoke(r.t.Context(), ar, r.cluster, &target.Target{Client: works, Owner: apply.Owner{Labels: r.AccessLabels(ar)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ar := byIssuer("corp", "https://corp", nil, "view")
			r := newRefusing(t, ar)
			if err := r.gives(ar); err != nil || len(r.truster.asked) != 1 {
				t.Fatal(r.trusted(), err)
			}
			trust.Record(ar, true)
			if err := r.answers.Delete(t.Context(), ar); err != nil {
				t.Fatal(err)
			}
			ar.Generation, ar.Spec.OIDC, ar.Spec.Token = 2, nil, &v1alpha1.TokenConfig{}
			if err := attack(r, ar); err != nil {
				t.Error(err)
			}
			if len(r.truster.asked) > 0 {
				t.Errorf("the cluster trusts %v", r.trusted())
			}
		})
	}
}

// reachable is a truster whose clusters are empty.
type reachable struct {
	*truster
	host string
}

func (r reachable) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return &rest.Config{Host: r.host}, nil
}

// TestLeftovers_IssuerOfDeletedRequestIsUntrusted: the issuer of a request whose finalizer was removed by force, or which the provider never
// recorded as trusted, is found in the search for leftovers, and those of others stay.
func TestLeftovers_IssuerOfDeletedRequestIsUntrusted(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": []}`))
	}))
	defer empty.Close()
	stays, granted := byIssuer("stays", "https://stays", nil, "view"), byIssuer("granted", "https://granted", nil, "view")
	trust.Record(stays, true)
	r := newRefusing(t, stays, granted)
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(granted), granted); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.gives(granted.DeepCopy()), r.gives(byIssuer("gone", "https://gone", nil, "view"))); err != nil {
		t.Fatal(err)
	}
	if len(r.truster.asked) != 3 {
		t.Fatalf("the cluster trusts %v", r.trusted())
	}
	if err := hub.Patch(t.Context(), r.client, granted, func() { granted.Finalizers = nil }); err != nil { // the cache does not have it yet
		t.Fatal(err)
	}
	r.Leftovers = leftovers.New(r.Identity, reachable{r.truster, empty.URL}, r.client, r.client)
	r.Leftovers.Trust = r.issuers.Again
	r.Leftovers.Search(t.Context(), r.cluster)
	if got := r.trusted(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"https://granted", "https://stays"}) {
		t.Errorf("the cluster trusts %v", got)
	}
}

// TestInPlace_RequiresRecordedIssuer: earlier versions recorded no issuer, and only recorded ones are trusted.
func TestInPlace_RequiresRecordedIssuer(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "view")
	r := newRefusing(t, ar)
	r.provider = reachable{r.truster, "https://blue"}
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	ar.Status.Phase = v1alpha1.REQUEST_GRANTED
	hub.SetCondition(&ar.Status.Status, 1, metav1.Condition{Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue})
	if do, _, _ := r.looksClosely(t.Context(), ar, r.cluster).inPlace(); do != grant {
		t.Error("the cluster does not trust its issuer again")
	}
	trust.Record(ar, true)
	if do, _, renewal := r.looksClosely(t.Context(), ar, r.cluster).inPlace(); do != keep || !renewal.IsZero() {
		t.Errorf("it is granted again at each look: %v, renewal %v", do, renewal)
	}
}

// TestRefused_OtherIssuerNeedsRevocationFirst: the names of a request's subjects belong to its issuer until the rights are deleted,
// whatever the request asks for since. A request does not count among those whose issuers are trusted while openMCP's operator has not prepared it,
// or its Secrets cannot be written.
func TestRefused_OtherIssuerNeedsRevocationFirst(t *testing.T) {
	corp, evil := byIssuer("corp", "https://corp", nil, "cluster-admin"), byIssuer("evil", "https://evil", new("corp:"), "view")
	same := byIssuer("same", "https://corp", new("corp:"), "view")
	same.Spec.OIDC.GroupsPrefix = new("corp:")
	r := newRefusing(t, evil, same)
	if err := r.gives(corp); err != nil { // the hub does not list it
		t.Fatal(err)
	}
	if err := r.gives(evil); hub.ReasonOf(err, "") != hub.ReasonOIDCConflict || slices.Contains(r.trusted(), "https://evil") {
		t.Errorf("%v, and the cluster trusts %v", err, r.trusted())
	}
	if err := r.gives(same); err != nil {
		t.Errorf("its own issuer: %v", err)
	}
	for _, ar := range []*v1alpha1.AccessRequest{corp, same} {
		if _, err := (&target.Target{Client: r.in, Owner: apply.Owner{Labels: r.AccessLabels(ar)}}).Cleanup(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	r.restarts()
	if err := r.client.Delete(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	if err := r.gives(evil); err != nil {
		t.Errorf("when they are gone: %v", err)
	}
}

// TestRefused_WithoutSecretRevokesAll: a request whose Secrets can no longer be written when its spec changes does not keep its previous access.
func TestRefused_WithoutSecretRevokesAll(t *testing.T) {
	ar := byIssuer("corp", "https://corp", nil, "cluster-admin")
	r := newRefusing(t, ar)
	if err := r.gives(ar); err != nil {
		t.Fatal(err)
	}
	trust.Record(ar, true)
	ar.Generation, ar.Spec.OIDC.Issuer = 2, "https://new"
	live := interceptor.NewClient(r.client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, name client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(corev1.Resource("secrets"), name.Name, errors.New("no RoleBinding"))
		},
	})
	r.answers = answer.New(r.Identity, r.client, live, &events.FakeRecorder{})
	if err := r.gives(ar); hub.ReasonOf(err, "") != hub.ReasonSecretsForbidden {
		t.Errorf("%v", err)
	}
	if r.bindings() != 0 || len(r.trusted()) != 0 {
		t.Errorf("%d bindings remain, and the cluster trusts %v", r.bindings(), r.trusted())
	}
}
