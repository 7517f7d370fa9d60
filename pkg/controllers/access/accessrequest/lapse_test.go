// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const firstMark = "request.clusters.openmcp.cloud/first"

// granted returns a request that its provider has granted by the ClusterRequest.
func (f *fixture) granted(t *testing.T, name string) *v1alpha1.AccessRequest {
	t.Helper()
	if err := f.Create(t.Context(), access(name, toRequest)); err != nil {
		t.Fatal(err)
	}
	got, _ := f.reconcile(t, name)
	if !f.hasProvider(got) {
		t.Fatalf("not prepared: %+v", got.Status)
	}
	got.Status.Phase, got.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, got.Generation
	f.update(t, got, true)
	return got
}

func (f *fixture) update(t *testing.T, obj client.Object, status bool) {
	t.Helper()
	err := error(nil)
	if status {
		err = f.Status().Update(t.Context(), obj)
	} else {
		err = f.Update(t.Context(), obj)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replace deletes a ClusterRequest by force, and creates another of the name unless it is nil.
func (f *fixture) replace(t *testing.T, by *v1alpha1.ClusterRequest) {
	t.Helper()
	if err := f.Delete(t.Context(), grant("", "")); err != nil {
		t.Fatal(err)
	}
	if by != nil {
		if err := f.Create(t.Context(), by); err != nil {
			t.Fatal(err)
		}
	}
}

func again(uid types.UID) *v1alpha1.ClusterRequest {
	r := grant("Granted", "my-cluster")
	r.UID = uid
	return r
}

// The state of a ClusterRequest, seen at once or only after a restart, decides whether the access by it ends.
func TestLapse_EndsWithClusterRequest(t *testing.T) {
	status := func(phase, cluster string) func(*testing.T, *fixture) {
		return func(t *testing.T, f *fixture) {
			t.Helper()
			r := &v1alpha1.ClusterRequest{}
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(grant("", "")), r); err != nil {
				t.Fatal(err)
			}
			r.Status = grant(phase, cluster).Status
			f.update(t, r, true)
		}
	}
	held := func(then func(*testing.T, *fixture)) func(*testing.T, *fixture) {
		return func(t *testing.T, f *fixture) {
			t.Helper()
			c := &v1alpha1.Cluster{}
			if err := f.Get(t.Context(), client.ObjectKeyFromObject(cluster()), c); err != nil {
				t.Fatal(err)
			}
			c.Finalizers = append(c.Finalizers, firstMark)
			f.update(t, c, false)
			then(t, f)
		}
	}
	for name, test := range map[string]struct {
		happens func(*testing.T, *fixture)
		ends    bool
	}{
		"nothing":                      {func(*testing.T, *fixture) {}, false},
		"gone":                         {func(t *testing.T, f *fixture) { f.replace(t, nil) }, true},
		"gone, though it has the mark": {held(func(t *testing.T, f *fixture) { f.replace(t, nil) }), true},
		"made anew, and granted the same Cluster": {func(t *testing.T, f *fixture) { f.replace(t, again("second")) }, true},
		"made anew, and not granted": {func(t *testing.T, f *fixture) {
			second := again("second")
			second.Status = v1alpha1.ClusterRequestStatus{}
			f.replace(t, second)
		}, true},
		"being deleted": {func(t *testing.T, f *fixture) {
			r := &v1alpha1.ClusterRequest{}
			_ = f.Get(t.Context(), client.ObjectKeyFromObject(grant("", "")), r)
			r.Finalizers = []string{v1alpha1.ClusterRequestFinalizer}
			f.update(t, r, false)
			if err := f.Delete(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}, true},
		"denied":                      {status("Denied", "my-cluster"), true},
		"denied, and still holds":     {held(status("Denied", "my-cluster")), true},
		"another Cluster":             {status("Granted", "other"), true},
		"pending, and nothing held":   {status("Pending", "my-cluster"), true},
		"no status, and nothing held": {status("", ""), true},
		"pending for a moment":        {held(status("Pending", "my-cluster")), false},
		"its status is lost":          {held(status("", "")), false},
		"the Cluster is lost": {func(t *testing.T, f *fixture) {
			c := &v1alpha1.Cluster{}
			_ = f.Get(t.Context(), client.ObjectKeyFromObject(cluster()), c)
			c.Finalizers = nil
			f.update(t, c, false)
			if err := f.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			status("Pending", "my-cluster")(t, f)
		}, false},
		"granted, the finalizer not seen yet":  {status("Granted", "my-cluster"), false},
		"another Cluster, though it holds one": {held(status("Pending", "other")), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"))
			if got := f.granted(t, "a"); markOf(got) != firstMark {
				t.Errorf("the mark is %q", markOf(got))
			}
			test.happens(t, f)
			f.writes = nil
			got, _ := f.reconcile(t, "a")
			if (got == nil) != test.ends {
				t.Errorf("ended: %t", got == nil)
			}
			if !test.ends && (len(f.writes) > 0 || got != nil && !got.Status.IsGranted()) {
				t.Errorf("%+v, wrote %q", got, f.writes)
			}
		})
	}
}

// The reason for which a request is deleted, waits or is denied is in an event.
func TestEvents_ExplainDecisions(t *testing.T) {
	f := newFixture(t, profile(), cluster(), access("a", toRequest), access("over", toCluster, ttl(time.Minute)))
	f.reconcile(t, "a")
	if err := f.Create(t.Context(), grant("Granted", "my-cluster")); err != nil {
		t.Fatal(err)
	}
	f.reconcile(t, "a")
	f.reconcile(t, "a")
	f.replace(t, nil)
	f.reconcile(t, "a")
	f.reconcile(t, "over")
	for _, want := range []string{
		`Warning InvalidReference ClusterRequest "foo/my-cluster-request" not found`,
		`Normal Prepared the provider "asdf" is responsible`,
		`Normal AccessEnded The access ends: the ClusterRequest "foo/my-cluster-request" is gone`,
		`Normal AccessEnded The access ends: its ttl has expired, 1m0s after its creation`,
	} {
		select {
		case got := <-f.events.Events:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		default:
			t.Fatalf("no event, want %q", want)
		}
	}
	if len(f.events.Events) > 0 {
		t.Errorf("there is %q", <-f.events.Events)
	}
}

// Nothing that the requester may write keeps the access: neither labels, nor another spec, nor an owner.
func TestLapse_RequesterCannotRetainAccess(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AccessRequest){
		"labels of another selector": func(a *v1alpha1.AccessRequest) { a.Labels = map[string]string{"landscape": "mine"} },
		"another spec": func(a *v1alpha1.AccessRequest) {
			a.Generation++
			a.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Name: "x"}}
		},
		"an owner": func(a *v1alpha1.AccessRequest) {
			a.OwnerReferences = []metav1.OwnerReference{{Name: "x", UID: "x", Kind: "x", APIVersion: "v1"}}
		},
		"to be looked at": operation("reconcile"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"))
			got := f.granted(t, "a")
			change(got)
			f.update(t, got, false)
			f.selector = labels.SelectorFromSet(labels.Set{"clusters.openmcp.cloud/provider": "asdf"})
			f.replace(t, again("second"))
			if got, _ := f.reconcile(t, "a"); got != nil {
				t.Errorf("it goes on: %+v", got)
			}
		})
	}
}

// A request and its ClusterRequest that are deleted at once end in either order.
func TestLapse_BothDeleted(t *testing.T) {
	f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"))
	got := f.granted(t, "a")
	got.Finalizers = []string{"example.com/provider"}
	f.update(t, got, false)
	if err := f.Delete(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	f.replace(t, nil)
	f.writes = nil
	got, _ = f.reconcile(t, "a")
	if got == nil || slices.Contains(f.writes, "delete *v1alpha1.AccessRequest") || got.Status.Phase == "Denied" {
		t.Errorf("it is deleted again: %q", f.writes)
	}
}

// The process may end after any write while the ClusterRequest is replaced by another. Access to the Cluster afterwards is by the new one.
func TestLapse_AfterCrashAtEachWrite(t *testing.T) {
	for crash := range 6 {
		for name, second := range map[string]*v1alpha1.ClusterRequest{"gone": nil, "made anew": again("second")} {
			f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"), access("a", toRequest))
			f.refuse = func(n int) error {
				if n >= crash {
					return errors.New("killed")
				}
				return nil
			}
			_, _ = f.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "bar", Name: "a"}})
			f.refuse = func(int) error { return nil }
			f.replace(t, second)
			got, _ := f.reconcile(t, "a")
			for range 3 {
				got, _ = f.reconcile(t, "a")
			}
			switch {
			case got == nil:
			case got.Spec.ClusterRef == nil && second == nil:
			case second != nil && got.Spec.ClusterRef != nil && markOf(got) == second.FinalizerForCluster():
			default:
				t.Errorf("%s after %d writes: %+v %+v", name, crash, got.Spec, got.Status)
			}
		}
	}
}

// A request that names a Cluster, and a ClusterRequest that has a different one, has access by the name of the Cluster.
func TestLapse_InconsistentCounterpart(t *testing.T) {
	f := newFixture(t, profile(), cluster(), grant("Granted", "other"), access("a", toCluster, toRequest))
	f.reconcile(t, "a")
	f.replace(t, nil)
	if got, _ := f.reconcile(t, "a"); got == nil || markOf(got) != "" {
		t.Errorf("it is %+v", got)
	}
}

// A request that was granted without a mark, as by openMCP's operator, gets one, and is not changed otherwise.
func TestLapse_MarksRequestsPreparedByOthers(t *testing.T) {
	f := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster"),
		access("a", toCluster, toRequest, labelled("asdf", "default"), phase("Granted", 1)))
	got, _ := f.reconcile(t, "a")
	if markOf(got) != firstMark || !got.Status.IsGranted() || !slices.Equal(f.writes, []string{patchStatus}) {
		t.Errorf("%+v, wrote %q", got.Status, f.writes)
	}
	f.replace(t, again("second"))
	got, _ = f.reconcile(t, "a")
	if got != nil {
		t.Error("it goes on")
	}
}

// The cache may not have an object that was just created.
func TestLapse_StaleCache(t *testing.T) {
	f, late := newFixture(t, profile(), cluster(), grant("Granted", "my-cluster")), newFixture(t)
	got := f.granted(t, "a")
	f.client, f.live = late.Client, f.Client
	p := &pass{Reconciler: f.Reconciler, access: got}
	if err := p.deleteLapsed(t.Context()); err != nil {
		t.Error(err)
	}
}

// A ClusterRequest that is being deleted gives no new access.
func TestLapse_DeletingClusterRequestGrantsNothing(t *testing.T) {
	r := grant("Granted", "my-cluster")
	r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.ClusterRequestFinalizer}
	f := newFixture(t, profile(), cluster(), r, access("a", toRequest))
	got, _ := f.reconcile(t, "a")
	wantPending(t, got, metav1.ConditionFalse, "InvalidReference", `ClusterRequest "foo/my-cluster-request" is being deleted`)
}
