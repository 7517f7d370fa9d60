// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leftoverclusters

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestReconcile_DeletesAbandonedClusters(t *testing.T) {
	const ttl = time.Hour
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: registration.LeaseName}}
	for name, test := range map[string]struct {
		made     time.Duration
		denied   time.Duration
		accepted bool
		lease    bool
		goes     bool
		after    time.Duration
	}{
		"never let in":                   {made: 2 * ttl, goes: true},
		"never let in, but new":          {made: ttl / 4, after: ttl * 3 / 4},
		"left long ago":                  {made: 10 * ttl, denied: 2 * ttl, goes: true},
		"left a moment ago":              {made: 10 * ttl, denied: time.Minute, after: 59 * time.Minute},
		"accepted":                       {made: 10 * ttl, accepted: true},
		"denied, and not cleaned up yet": {made: 10 * ttl, denied: 2 * ttl, lease: true, after: ttl},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1", CreationTimestamp: ago(test.made)},
				Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: test.accepted},
			}
			if test.denied > 0 {
				cluster.Status.Conditions = []metav1.Condition{{
					Type: registration.ConditionHubAccepted, Status: metav1.ConditionFalse, Reason: registration.ReasonDenied, LastTransitionTime: ago(test.denied),
				}}
			}
			objs := []client.Object{cluster}
			if test.lease {
				objs = append(objs, lease.DeepCopy())
			}
			scheme := runtime.NewScheme()
			builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, coordinationv1.AddToScheme)
			if err := builder.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
			r := &Reconciler{client: c, live: c, clock: clocktesting.NewFakePassiveClock(now), ttl: ttl}
			key := client.ObjectKeyFromObject(cluster)
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter != test.after {
				t.Errorf("%v, again in %s, want %s", err, result.RequeueAfter, test.after)
			}
			if gone := apierrors.IsNotFound(c.Get(t.Context(), key, cluster)); gone != test.goes {
				t.Errorf("gone: %t, want %t", gone, test.goes)
			}
		})
	}
}

func TestReconcile_RetainsConcurrentlyAccepted(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clusterv1.AddToScheme, coordinationv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "uid1"}}
	key := client.ObjectKeyFromObject(cluster)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build()
	// The cluster is accepted between the read of the cluster and that of its Lease.
	live := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, lease client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, cluster); err != nil {
				return err
			}
			cluster.Spec.HubAcceptsClient = true
			if err := c.Update(ctx, cluster); err != nil {
				return err
			}
			return c.Get(ctx, lease, into, options...)
		},
	})
	r := &Reconciler{client: c, live: live, clock: clocktesting.NewFakePassiveClock(time.Now()), ttl: time.Hour}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), key, cluster); err != nil || !cluster.Spec.HubAcceptsClient {
		t.Errorf("%v, accepted: %t", err, cluster.Spec.HubAcceptsClient)
	}
}
