// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package defaultclusterset

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

type (
	selector = clusterv1beta2.ManagedClusterSelector
	set      = clusterv1beta2.ManagedClusterSet
)

var (
	exclusive  = selector{SelectorType: "ExclusiveClusterSetLabel"}
	everything = selector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{}}
	nothing    = selector{SelectorType: "LabelSelector"}
	some       = selector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "c", Operator: metav1.LabelSelectorOpExists},
		},
	}}
)

func newSet(name string, selector selector, autoUpdate string) *set {
	s := &set{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"theirs": "kept"}},
		Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector:   selector,
			ManagedNamespaces: []clusterv1beta2.ManagedNamespaceConfig{{Name: "theirs"}},
		},
	}
	if autoUpdate != "" {
		s.Annotations = map[string]string{"cluster.open-cluster-management.io/autoupdate": autoUpdate}
	}
	return s
}

// newClient counts the writes, and answers them with refuse if that is not nil.
func newClient(t *testing.T, writes *int, refuse error, objs ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			*writes++
			if refuse != nil {
				return refuse
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
			opts ...client.PatchOption) error {
			*writes++
			if refuse != nil {
				return refuse
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

func TestReconcile_RestoresSelector(t *testing.T) {
	for name, test := range map[string]struct {
		set    string
		before *set
		want   selector
		writes int
	}{
		"default is missing": {set: "default", want: exclusive, writes: 1},
		"global is missing":  {set: "global", want: everything, writes: 1},
		"default is right":   {set: "default", before: newSet("default", exclusive, ""), want: exclusive},
		"global is right":    {set: "global", before: newSet("global", everything, ""), want: everything},
		"default was changed": {
			set: "default", before: newSet("default", some, ""), want: exclusive, writes: 1,
		},
		"global was changed": {
			set: "global", before: newSet("global", some, ""), want: everything, writes: 1,
		},
		"global was made exclusive": {
			set: "global", before: newSet("global", exclusive, ""), want: everything, writes: 1,
		},
		"global selects nothing": {
			set: "global", before: newSet("global", nothing, ""), want: everything, writes: 1,
		},
		"changed, and that is wanted": {
			set: "default", before: newSet("default", some, "false"), want: some,
		},
		"changed, and that is not wanted": {
			set: "default", before: newSet("default", some, "true"), want: exclusive, writes: 1,
		},
		"another set": {set: "dev", before: newSet("dev", some, ""), want: some},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			var objs []client.Object
			if test.before != nil {
				objs = append(objs, test.before)
			}
			c := newClient(t, &writes, nil, objs...)
			r := &Reconciler{client: c}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request(test.set)); err != nil {
					t.Fatal(err)
				}
			}
			got := &set{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: test.set}, got); err != nil {
				t.Fatal(err)
			}
			want := &set{}
			if test.before != nil {
				want = test.before.DeepCopy()
			}
			want.Name, want.ResourceVersion, want.Spec.ClusterSelector = test.set, got.ResourceVersion, test.want
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			if writes != test.writes {
				t.Errorf("%d writes, want %d", writes, test.writes)
			}
		})
	}
}

func TestReconcile_WaitsUntilASetIsGone(t *testing.T) {
	writes := 0
	going := newSet("default", some, "")
	going.Finalizers = []string{"example.com/hold"}
	c := newClient(t, &writes, nil, going)
	if err := c.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Reconciler{client: c}).Reconcile(t.Context(), request("default")); err != nil || writes != 0 {
		t.Errorf("error %v after %d writes, want none", err, writes)
	}
}

// No event reports that another set has released the label of "default", so every refusal must be an error, which is retried.
func TestReconcile_RetriesAllErrors(t *testing.T) {
	sets := schema.GroupResource{Resource: "managedclustersets"}
	for name, refusal := range map[string]error{
		"claimed by another set": apierrors.NewConflict(sets, "default", errors.New("claimed")),
		"unavailable":            apierrors.NewServiceUnavailable("away"),
	} {
		for what, objs := range map[string][]client.Object{
			"creation": nil, "rollback": {newSet("default", some, "")},
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				writes := 0
				r := &Reconciler{client: newClient(t, &writes, refusal, objs...)}
				if _, err := r.Reconcile(t.Context(), request("default")); !errors.Is(err, refusal) || writes != 1 {
					t.Errorf("error %v after %d writes, want %v", err, writes, refusal)
				}
			})
		}
	}
}

func TestStart_EnqueuesBothSetsOnly(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := requestAll(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 2 {
		t.Errorf("%d requests, want 2", queue.Len())
	}
	for name, want := range map[string]bool{"default": true, "global": true, "dev": false} {
		if kept(newSet(name, some, "")) != want {
			t.Errorf("%s is kept: %t, want %t", name, !want, want)
		}
	}
}
