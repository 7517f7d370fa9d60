// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	finalizer = "access.clusters.openmcp.cloud/requests"
	provider  = "example.com/provider"
)

var key = client.ObjectKey{Namespace: "foo", Name: "blue"}

// newClient returns a hub, or its cache. It counts writes.
func newClient(t *testing.T, writes *int, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	index := func(field func(*v1alpha1.ObjectReference) string) client.IndexerFunc {
		return func(obj client.Object) []string {
			if ref := obj.(*v1alpha1.AccessRequest).Spec.ClusterRef; ref != nil {
				return []string{field(ref)}
			}
			return nil
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.AccessRequest{}, &v1alpha1.Cluster{}).
		WithIndex(&v1alpha1.AccessRequest{}, ClusterIndex, ByCluster).
		WithIndex(&v1alpha1.AccessRequest{}, "spec.clusterRef.name", index(func(r *v1alpha1.ObjectReference) string { return r.Name })).
		WithIndex(&v1alpha1.AccessRequest{}, "spec.clusterRef.namespace", index(func(r *v1alpha1.ObjectReference) string { return r.Namespace })).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				*writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				*writes++
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
}

func cluster(finalizers ...string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: finalizers}}
}

func deleting(finalizers ...string) *v1alpha1.Cluster {
	c := cluster(finalizers...)
	c.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	return c
}

func told(c *v1alpha1.Cluster) *v1alpha1.Cluster {
	c.Status.Conditions = []metav1.Condition{{
		Type: "AccessRequestsDeleted", Status: "False", Reason: "WaitingForAccessRequestDeletion", Message: "1", LastTransitionTime: metav1.Now(),
	}}
	return c
}

func access(namespace, name string, changes ...func(*v1alpha1.AccessRequest)) *v1alpha1.AccessRequest {
	r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	r.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: key.Namespace, Name: key.Name}
	for _, change := range changes {
		change(r)
	}
	return r
}

func denied(r *v1alpha1.AccessRequest) { r.Status.Phase, r.Status.ObservedGeneration = "Denied", 1 }

func changed(r *v1alpha1.AccessRequest) { r.Generation++ }

func tooLate(r *v1alpha1.AccessRequest) {
	r.Status.Phase = "Pending"
	r.Status.Conditions = []metav1.Condition{{
		Type: "Prepared", Status: "False", Reason: "WaitingForAccessRequestDeletion", LastTransitionTime: metav1.Now(),
	}}
}

// deniedByPolicy makes a request one that is denied and being deleted.
func deniedByPolicy(r *v1alpha1.AccessRequest) {
	tooLate(r)
	r.Status.Conditions[0].Reason = "DeniedByPolicy"
}

func going(r *v1alpha1.AccessRequest) {
	r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{provider}
}

func hadAccess(r *v1alpha1.AccessRequest) {
	r.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: "a.kubeconfig"}
}

func labelled(r *v1alpha1.AccessRequest) {
	r.Labels = map[string]string{"clusters.openmcp.cloud/provider": "kind"}
}

func elsewhere(r *v1alpha1.AccessRequest) { r.Spec.ClusterRef.Namespace = "bar" }

func TestReconcile_ProtectsClusterWithAccessRequests(t *testing.T) {
	many := func() (objs []client.Object) {
		for i := range 12 {
			objs = append(objs, access("foo", fmt.Sprintf("a%02d", i)))
		}
		return append(objs, access("bar", "secret"))
	}
	for name, test := range map[string]struct {
		cluster *v1alpha1.Cluster
		// cached are the objects of the cache, created those that only the hub has.
		cached, created []client.Object
		finalizers      []string
		status, message string
		writes          int
	}{
		"nobody has access":               {cluster: cluster(), finalizers: nil},
		"somebody asks for access":        {cluster: cluster(provider), cached: []client.Object{access("bar", "a")}, finalizers: []string{provider, finalizer}, writes: 1},
		"access to another is asked for":  {cluster: cluster(), cached: []client.Object{access("bar", "a", elsewhere)}},
		"the one who asks is denied":      {cluster: cluster(), cached: []client.Object{access("bar", "a", denied)}},
		"kept already":                    {cluster: cluster(finalizer), cached: []client.Object{access("bar", "a")}, finalizers: []string{finalizer}},
		"the last one is gone":            {cluster: cluster(finalizer), finalizers: []string{finalizer}},
		"deleted, and nobody has access":  {cluster: deleting(finalizer, provider), finalizers: []string{provider}, writes: 1},
		"deleted, and it was not kept":    {cluster: deleting(provider), cached: []client.Object{access("bar", "a")}, finalizers: []string{provider}},
		"deleted, and access is denied":   {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", denied)}, finalizers: []string{provider}, writes: 1},
		"deleted, and all came too late":  {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", tooLate)}, finalizers: []string{provider}, writes: 1},
		"deleted, and access to another":  {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", elsewhere)}, finalizers: []string{provider}, writes: 1},
		"deleted, after it was waited":    {cluster: told(deleting(finalizer, provider)), finalizers: []string{provider}, status: "True", writes: 2},
		"deleted, and the cache is early": {cluster: deleting(finalizer, provider), created: []client.Object{access("foo", "a")}, finalizers: []string{finalizer, provider}, status: "False", message: "1 (a)", writes: 1},
		"deleted, and somebody has access": {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "b"), access("foo", "a"), access("foo", "c", denied)},
			finalizers: []string{finalizer, provider}, status: "False", message: "2 (a, b)", writes: 1},
		"deleted, and one changes after the denial":    {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", denied, changed)}, finalizers: []string{provider}, writes: 1},
		"deleted, and one goes whom the policy denied": {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", deniedByPolicy, labelled)}, finalizers: []string{provider}, writes: 1},
		"deleted, and one waits for its provider": {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", going), access("foo", "b")},
			finalizers: []string{finalizer, provider}, status: "False", writes: 1,
			message: "2 (a, b); 1 already being deleted, until the provider has revoked the access"},
		"deleted, and one goes who had access before it": {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", deniedByPolicy, hadAccess)},
			finalizers: []string{finalizer, provider}, status: "False", message: "1 (a)", writes: 1},
		"deleted, and one has labels though it came late": {cluster: deleting(finalizer, provider), cached: []client.Object{access("foo", "a", tooLate, labelled)},
			finalizers: []string{finalizer, provider}, status: "False", message: "1 (a)", writes: 1},
		"deleted, and somebody elsewhere has access": {cluster: deleting(finalizer, provider), cached: []client.Object{access("bar", "secret")},
			finalizers: []string{finalizer, provider}, status: "False", message: "1", writes: 1},
		"deleted, and many have access": {cluster: deleting(finalizer, provider), cached: many(),
			finalizers: []string{finalizer, provider}, status: "False", message: "13 (a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, and 3 more)", writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			hub := newClient(t, &writes, append(append(test.cached, test.created...), test.cluster)...)
			current := &v1alpha1.Cluster{}
			if err := hub.Get(t.Context(), key, current); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{client: hub, live: hub}
			if test.created != nil {
				r.client = cached{Client: hub, list: newClient(t, new(int), test.cached...)}
			}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			if err := hub.Get(t.Context(), key, current); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.finalizers, current.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			condition := meta.FindStatusCondition(current.Status.Conditions, "AccessRequestsDeleted")
			if condition == nil {
				condition = &metav1.Condition{}
			}
			if test.message != "" {
				test.message = "the Cluster stays until its AccessRequests are deleted: " + test.message
			}
			if string(condition.Status) != test.status || condition.Message != test.message {
				t.Errorf("condition %s %q, want %s %q", condition.Status, condition.Message, test.status, test.message)
			}
			if test.status == "False" && condition.Reason != "WaitingForAccessRequestDeletion" {
				t.Errorf("reason %s", condition.Reason)
			}
			if writes != test.writes {
				t.Errorf("%d writes, want %d", writes, test.writes)
			}
		})
	}
}

// cached lists from the objects that have arrived so far.
type cached struct {
	client.Client
	list client.Client
}

func (c cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return c.list.List(ctx, into, opts...)
}

func TestProtect_RejectsDeletingCluster(t *testing.T) {
	writes := 0
	for name, c := range map[string]*v1alpha1.Cluster{"kept": deleting(finalizer), "not kept": deleting(provider)} {
		hub := newClient(t, &writes, c)
		err := Protect(t.Context(), hub, hub, key)
		if late := (*BeingDeletedError)(nil); !errors.As(err, &late) || late.Cluster != key || writes != 0 {
			t.Errorf("%s: %v after %d writes", name, err, writes)
		}
	}
	hub := newClient(t, &writes)
	if err := Protect(t.Context(), hub, hub, key); !apierrors.IsNotFound(err) {
		t.Errorf("a Cluster that is not there: %v", err)
	}
}

// racing is a hub where another writer is faster with every first write.
type racing struct {
	client.Client
	then func()
}

func (r *racing) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if r.then != nil {
		r.then()
		r.then = nil
		return apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, obj.GetName(), errors.New("changed"))
	}
	return r.Client.Patch(ctx, obj, patch, opts...)
}

func TestProtect_RecheckAfterConflict(t *testing.T) {
	hub := newClient(t, new(int), cluster(provider))
	if err := Protect(t.Context(), hub, &racing{Client: hub, then: func() {}}, key); err != nil {
		t.Fatal(err)
	}
	current := &v1alpha1.Cluster{}
	if err := hub.Get(t.Context(), key, current); err != nil || !slices.Contains(current.Finalizers, finalizer) {
		t.Errorf("finalizers %q, %v", current.Finalizers, err)
	}
	hub = newClient(t, new(int), cluster(provider))
	deleted := &racing{Client: hub, then: func() {
		if err := hub.Delete(t.Context(), cluster()); err != nil {
			t.Error(err)
		}
	}}
	if err := Protect(t.Context(), hub, deleted, key); !errors.As(err, new(*BeingDeletedError)) {
		t.Errorf("a Cluster that is deleted in the meantime: %v", err)
	}
}

func TestAccessRequests_EnqueueTheirClusters(t *testing.T) {
	requested := func(do func(workqueue.TypedRateLimitingInterface[reconcile.Request])) bool {
		q := &queue{}
		do(q)
		if len(q.added) > 1 || len(q.added) == 1 && q.added[0].NamespacedName != key {
			t.Errorf("requested %v", q.added)
		}
		return len(q.added) > 0
	}
	update := func(before, after *v1alpha1.AccessRequest) bool {
		return requested(func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			clusterOf().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		})
	}
	none := access("bar", "a", func(r *v1alpha1.AccessRequest) { r.Spec.ClusterRef = nil })
	for name, test := range map[string]struct{ got, want bool }{
		"created": {requested(func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			clusterOf().Create(t.Context(), event.CreateEvent{Object: access("bar", "a")}, q)
		}), true},
		"deleted": {requested(func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			clusterOf().Delete(t.Context(), event.DeleteEvent{Object: access("bar", "a")}, q)
		}), true},
		"deleted without a Cluster": {requested(func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			clusterOf().Delete(t.Context(), event.DeleteEvent{Object: none}, q)
		}), false},
		"given a Cluster": {update(none, access("bar", "a")), true},
		"denied":          {update(access("bar", "a"), access("bar", "a", denied)), true},
		"being deleted":   {update(access("bar", "a"), access("bar", "a", going)), true},
		"labelled":        {update(access("bar", "a"), access("bar", "a", labelled)), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: requested %t", name, test.got)
		}
	}
}

// queue records what is added to it.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []reconcile.Request
}

func (q *queue) AddAfter(r reconcile.Request, _ time.Duration) { q.added = append(q.added, r) }
