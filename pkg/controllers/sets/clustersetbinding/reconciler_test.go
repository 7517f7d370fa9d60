// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetbinding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

var earlier = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))

func newClient(t *testing.T, writes *int, refuse error, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithStatusSubresource(binding).
		WithIndex(binding, setIndex, boundSet).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client,
			subresource string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			*writes++
			if refuse != nil {
				return refuse
			}
			return c.SubResource(subresource).Patch(ctx, obj, patch, opts...)
		}}).Build()
}

func newSet(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func newBinding(namespace, set string, conditions ...metav1.Condition) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set, Generation: 1},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
		Status:     clusterv1beta2.ManagedClusterSetBindingStatus{Conditions: conditions},
	}
}

func bound(status metav1.ConditionStatus, reason string) metav1.Condition {
	c := metav1.Condition{Type: "Bound", Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: earlier}
	if status == metav1.ConditionFalse {
		c.Message = "It binds the set dev, which does not exist: placements of the namespace get no clusters from it. To create the set: kubectl hub create clusterset dev. " +
			"Otherwise delete the binding."
	}
	return c
}

func TestReconcile_WritesUpstreamCondition(t *testing.T) {
	foreign := metav1.Condition{Type: "Other", Status: "True", Reason: "Theirs", LastTransitionTime: earlier}
	unobserved := bound("True", "ClusterSetBound")
	unobserved.ObservedGeneration = 0
	for name, test := range map[string]struct {
		binding *clusterv1beta2.ManagedClusterSetBinding
		set     string
		want    []metav1.Condition
		writes  int
	}{
		"a new binding of a set": {
			binding: newBinding("ns", "dev"), set: "dev",
			want: []metav1.Condition{bound("True", "ClusterSetBound")}, writes: 1,
		},
		"a new binding of no set": {
			binding: newBinding("ns", "dev"), set: "prod",
			want: []metav1.Condition{bound("False", "ClusterSetNotFound")}, writes: 1,
		},
		"the set has come": {
			binding: newBinding("ns", "dev", bound("False", "ClusterSetNotFound")), set: "dev",
			want: []metav1.Condition{bound("True", "ClusterSetBound")}, writes: 1,
		},
		"the set has gone": {
			binding: newBinding("ns", "dev", bound("True", "ClusterSetBound")), set: "prod",
			want: []metav1.Condition{bound("False", "ClusterSetNotFound")}, writes: 1,
		},
		"the generation is observed": {
			binding: newBinding("ns", "dev", unobserved), set: "dev",
			want: []metav1.Condition{bound("True", "ClusterSetBound")}, writes: 1,
		},
		"nothing has changed": {
			binding: newBinding("ns", "dev", bound("True", "ClusterSetBound")), set: "dev",
			want: []metav1.Condition{bound("True", "ClusterSetBound")},
		},
		"the conditions of others stay": {
			binding: newBinding("ns", "dev", foreign), set: "dev",
			want: []metav1.Condition{foreign, bound("True", "ClusterSetBound")}, writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			c := newClient(t, &writes, nil, test.binding, newSet(test.set))
			r := &Reconciler{client: c}
			key := client.ObjectKeyFromObject(test.binding)
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			got := &clusterv1beta2.ManagedClusterSetBinding{}
			if err := c.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			// The time comes from the wall clock.
			ignore := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")
			if diff := cmp.Diff(test.want, got.Status.Conditions, ignore); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if writes != test.writes {
				t.Errorf("%d writes, want %d", writes, test.writes)
			}
		})
	}
}

func TestReconcile_IgnoresDeletingBinding(t *testing.T) {
	writes := 0
	binding := newBinding("ns", "dev")
	binding.Finalizers = []string{"example.com/hold"}
	c := newClient(t, &writes, nil, binding)
	if err := c.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{client: c}
	for _, name := range []string{"dev", "gone"} {
		key := client.ObjectKey{Namespace: "ns", Name: name}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Error(err)
		}
	}
	if writes != 0 {
		t.Errorf("%d writes, want none", writes)
	}
}

func TestReconcile_RetriesWithoutEvent(t *testing.T) {
	bindings := schema.GroupResource{Resource: "managedclustersetbindings"}
	for name, test := range map[string]struct {
		refusal error
		fails   bool
	}{
		"conflict":    {refusal: apierrors.NewConflict(bindings, "dev", errors.New("changed"))},
		"not found":   {refusal: apierrors.NewNotFound(bindings, "dev")},
		"unavailable": {refusal: apierrors.NewServiceUnavailable("away"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			binding := newBinding("ns", "dev")
			r := &Reconciler{client: newClient(t, &writes, test.refusal, binding)}
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(binding)})
			if (err != nil) != test.fails || writes != 1 {
				t.Errorf("error %v after %d writes, want an error: %t", err, writes, test.fails)
			}
		})
	}
}

func TestSets_EnqueueBindings(t *testing.T) {
	writes := 0
	r := &Reconciler{client: newClient(t, &writes, nil,
		newBinding("a", "dev"), newBinding("b", "dev"), newBinding("a", "prod"))}
	want := []reconcile.Request{
		{NamespacedName: client.ObjectKey{Namespace: "a", Name: "dev"}},
		{NamespacedName: client.ObjectKey{Namespace: "b", Name: "dev"}},
	}
	if diff := cmp.Diff(want, r.bindingsOf(t.Context(), newSet("dev"))); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := r.bindingsOf(t.Context(), newSet("other")); len(got) != 0 {
		t.Errorf("a set without bindings requests %v", got)
	}
}
