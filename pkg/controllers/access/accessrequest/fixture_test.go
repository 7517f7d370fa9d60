// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/clusterprotection"
)

// fixture is a hub with a profile, a Cluster of it, and the objects of a test.
type fixture struct {
	client.Client
	*Reconciler
	// writes are the successful writes, as verb, kind and subresource.
	writes []string
	events *events.FakeRecorder
	// refuse answers a write in the place of the hub, unless it returns nil.
	refuse func(n int) error
}

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func newFixture(t *testing.T, objs ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	f := &fixture{events: events.NewFakeRecorder(100), refuse: func(int) error { return nil }}
	f.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.AccessRequest{}, &v1alpha1.ClusterRequest{}, &v1alpha1.Cluster{}).
		WithIndex(&v1alpha1.AccessRequest{}, clusterprotection.ClusterIndex, clusterprotection.ByCluster).
		WithIndex(&v1alpha1.AccessRequest{}, requestIndex, requestOf).
		WithIndex(&v1alpha1.ClusterRequest{}, grantIndex, byGrant).
		WithIndex(&v1alpha1.Cluster{}, profileIndex, byProfile).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return f.write(fmt.Sprintf("patch %T", obj), func() error { return c.Patch(ctx, obj, patch, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return f.write(fmt.Sprintf("patch %T/%s", obj, sub), func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
				return f.write(fmt.Sprintf("delete %T", obj), func() error { return c.Delete(ctx, obj, opts...) })
			},
		}).Build()
	f.Reconciler = &Reconciler{
		client: f.Client, live: f.Client, clock: clocktesting.NewFakePassiveClock(now), selector: labels.Everything(), recorder: f.events,
		policy: func() *accesspolicy.Policy { return nil },
	}
	return f
}

func (f *fixture) write(what string, do func() error) error {
	if err := f.refuse(len(f.writes)); err != nil {
		return err
	}
	f.writes = append(f.writes, what)
	return do()
}

// reconcile reconciles a request once, and returns its new state, or nil if it is gone.
func (f *fixture) reconcile(t *testing.T, name string) (*v1alpha1.AccessRequest, reconcile.Result) {
	t.Helper()
	key := client.ObjectKey{Namespace: "bar", Name: name}
	result, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	access := &v1alpha1.AccessRequest{}
	if err := f.Get(t.Context(), key, access); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil, result
	}
	return access, result
}

func profile() *v1alpha1.ClusterProfile {
	return &v1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       v1alpha1.ClusterProfileSpec{ProviderRef: v1alpha1.LocalObjectReference{Name: "asdf"}},
	}
}

func cluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "foo", Name: "my-cluster", Generation: 1},
		Spec:       v1alpha1.ClusterSpec{Profile: "default", Tenancy: v1alpha1.TENANCY_EXCLUSIVE},
	}
}

func deleting(c *v1alpha1.Cluster, finalizers ...string) *v1alpha1.Cluster {
	c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: now}, append(c.Finalizers, finalizers...)
	return c
}

// grant returns a ClusterRequest in a phase, with a Cluster unless its name is empty.
func grant(phase, cluster string) *v1alpha1.ClusterRequest {
	r := &v1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "foo", Name: "my-cluster-request", UID: "first"}}
	r.Status.Phase = phase
	if cluster != "" {
		r.Status.Cluster = &v1alpha1.ObjectReference{Namespace: "foo", Name: cluster}
	}
	return r
}

func access(name string, changes ...func(*v1alpha1.AccessRequest)) *v1alpha1.AccessRequest {
	r := &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bar", Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Spec:       v1alpha1.AccessRequestSpec{Token: &v1alpha1.TokenConfig{}},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

type change = func(*v1alpha1.AccessRequest)

func toCluster(r *v1alpha1.AccessRequest) {
	r.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "foo", Name: "my-cluster"}
}

func toRequest(r *v1alpha1.AccessRequest) {
	r.Spec.RequestRef = &v1alpha1.ObjectReference{Namespace: "foo", Name: "my-cluster-request"}
}

func labelled(provider, profile string) change {
	return func(r *v1alpha1.AccessRequest) {
		r.Labels = map[string]string{}
		if provider != "" {
			r.Labels["clusters.openmcp.cloud/provider"] = provider
		}
		if profile != "" {
			r.Labels["clusters.openmcp.cloud/profile"] = profile
		}
	}
}

func phase(phase string, observed int64) change {
	return func(r *v1alpha1.AccessRequest) { r.Status.Phase, r.Status.ObservedGeneration = phase, observed }
}

func ttl(d time.Duration) change {
	return func(r *v1alpha1.AccessRequest) { r.Spec.TTL = &duration.Duration{Duration: d} }
}

func operation(value string) change {
	return func(r *v1alpha1.AccessRequest) { r.Annotations = map[string]string{"openmcp.cloud/operation": value} }
}

func generation(g int64) change { return func(r *v1alpha1.AccessRequest) { r.Generation = g } }

func going(r *v1alpha1.AccessRequest) {
	r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: now}, []string{"example.com/provider"}
	r.Generation++
}
