// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package finishedworks

import (
	"context"
	"math"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// finished returns a work whose condition Complete was set at start.
func finished(ttl *int64, status metav1.ConditionStatus, labels map[string]string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w", Labels: labels}}
	w.Spec.DeleteOption = &workv1.DeleteOption{TTLSecondsAfterFinished: ttl}
	w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkComplete, Status: status, LastTransitionTime: metav1.NewTime(start)}}
	return w
}

// W066, W067.
func TestReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		work *workv1.ManifestWork
		// after is the time since start at which the work is reconciled; wait is the time that it has left. The work is deleted if wait is 0.
		after, wait time.Duration
		stays       bool
	}{
		"in time":              {work: finished(new(int64(5)), "True", nil), after: time.Second, wait: 4 * time.Second},
		"over":                 {work: finished(new(int64(5)), "True", nil), after: 5 * time.Second},
		"at once":              {work: finished(new(int64(0)), "True", nil)},
		"without a ttl":        {work: finished(nil, "True", nil), after: time.Hour, stays: true},
		"not complete":         {work: finished(new(int64(5)), "False", nil), after: time.Hour, stays: true},
		"of a replica set":     {work: finished(new(int64(5)), "True", map[string]string{work.ReplicaSetLabel: "ns.web"}), after: time.Hour, stays: true},
		"of one by its hash":   {work: finished(new(int64(5)), "True", map[string]string{"work.open-cluster-management.io/ownerkey-hash": "a"}), after: time.Hour, stays: true},
		"longer than anything": {work: finished(new(int64(math.MaxInt64)), "True", nil), after: time.Hour, wait: longest - time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := workv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.work).Build()
			r := &Reconciler{client: c, clock: clocktesting.NewFakePassiveClock(start.Add(test.after))}
			key := client.ObjectKeyFromObject(test.work)
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter != test.wait {
				t.Errorf("%v, %v", result, err)
			}
			there := c.Get(t.Context(), key, &workv1.ManifestWork{}) == nil
			if want := test.stays || test.wait > 0; there != want {
				t.Errorf("there: %t, want %t", there, want)
			}
		})
	}
}

// A TTL that a user extends at the last moment takes effect: the controller deletes only the version that it has read.
func TestReconcile_DeletesReadVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := workv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := finished(new(int64(0)), "True", nil)
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(opts)
			if o.Preconditions == nil || *o.Preconditions.ResourceVersion != obj.GetResourceVersion() || o.Preconditions.UID == nil {
				t.Errorf("deleted with %+v", o.Preconditions)
			}
			return apierrors.NewConflict(workv1.SchemeGroupVersion.WithResource("manifestworks").GroupResource(), "w", nil)
		},
	})
	r := &Reconciler{client: c, clock: clocktesting.NewFakePassiveClock(start)}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
		t.Error(err)
	}
}
