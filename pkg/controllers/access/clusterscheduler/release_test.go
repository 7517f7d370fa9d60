// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func (f *fixture) gone(key string) bool {
	f.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	err := f.client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.ClusterRequest{})
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	return apierrors.IsNotFound(err)
}

// provide adds the finalizer of a provider to the cluster.
func (f *fixture) provide(cluster string) {
	f.Helper()
	f.changeCluster(cluster, func(c *v1alpha1.Cluster) { c.Finalizers = append(c.Finalizers, "provider.example.com/cluster") })
}

func (f *fixture) removeByProvider(cluster string) {
	f.Helper()
	f.changeCluster(cluster, func(c *v1alpha1.Cluster) { c.Finalizers = nil })
}

func TestDeletion_WaitsForCluster(t *testing.T) {
	for name, test := range map[string]struct {
		purpose string
		wait    *bool
		label   string
		others  int
		waits   bool
		deleted bool
	}{
		"exclusive":                          {purpose: "exclusive", waits: true, deleted: true},
		"exclusive, not to wait":             {purpose: "exclusive", wait: ptrTo(false), deleted: true},
		"shared":                             {purpose: "unlimited", deleted: true},
		"shared, to wait":                    {purpose: "unlimited", wait: ptrTo(true), waits: true, deleted: true},
		"shared with another, to wait":       {purpose: "unlimited", wait: ptrTo(true), others: 1},
		"exclusive, but the cluster is kept": {purpose: "exclusive", label: "false"},
		"shared, but the cluster is kept":    {purpose: "unlimited", wait: ptrTo(true), label: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, testConfig)
			request := newRequest("foo/one", test.purpose)
			request.Spec.WaitForClusterDeletion = test.wait
			f.create(request)
			f.settle("foo/one")
			for i := range test.others {
				f.ask(test.purpose, fmt.Sprintf("foo/other%d", i))
			}
			cluster := f.request("foo/one").Status.Cluster.NamespacedName().String()
			f.provide(cluster)
			if test.label != "" {
				f.changeCluster(cluster, func(c *v1alpha1.Cluster) { c.Labels[v1alpha1.DeleteWithoutRequestsLabel] = test.label })
			}
			f.delete(f.request("foo/one"))
			f.settle("foo/one")
			if deleted := f.cluster(cluster).DeletionTimestamp != nil; deleted != test.deleted {
				t.Errorf("the cluster is deleted: %t, want %t", deleted, test.deleted)
			}
			if f.cluster(cluster).GetTenancyCount() != test.others {
				t.Errorf("the cluster is held: %q", f.clusters())
			}
			if f.gone("foo/one") == test.waits {
				t.Fatalf("the request is gone: %t", !test.waits)
			}
			if !test.waits {
				return
			}
			f.wantAnswer("foo/one", "Pending "+cluster+" WaitingForClusterDeletion")
			if waiting := f.process.requestsOf(t.Context(), f.cluster(cluster)); !slices.Contains(waiting, requestFor("foo", "one")) {
				t.Errorf("its end is no event of the request: %v", waiting)
			}
			f.removeByProvider(cluster)
			f.settle("foo/one")
			if !f.gone("foo/one") {
				t.Error("the request is still there")
			}
		})
	}
}

// Requests with operations for others are not changed.
func TestOperation_IgnoreAndReconcile(t *testing.T) {
	f := newFixture(t, testConfig)
	request := newRequest("foo/exclusive", "exclusive")
	request.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
	f.create(request)
	f.writes = nil
	f.settle("foo/exclusive")
	if len(f.writes) > 0 {
		t.Errorf("written: %q", f.writes)
	}
	f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) {
		r.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationAnnotationValueReconcile
	})
	f.settle("foo/exclusive")
	f.wantAnswer("foo/exclusive", "Granted foo/exclusive-qilq5nsb ClusterGranted")
	if annotations := f.request("foo/exclusive").Annotations; len(annotations) > 0 {
		t.Errorf("%v", annotations)
	}
}

// A process may be killed after any write. The next one reaches the same result.
func TestKilled_AfterAnyWriteNextProcessCompletes(t *testing.T) {
	for name, test := range map[string]struct {
		purpose    string
		others     int
		randomized bool
		status     bool // whether the status was lost before the deletion
		delete     bool
		want       []string
		least      int
	}{
		"a new cluster":                 {purpose: "exclusive", want: []string{"foo/exclusive-qilq5nsb exclusive"}, least: 3},
		"a new cluster, a random name":  {purpose: "exclusive", randomized: true, least: 3},
		"a shared cluster":              {purpose: "shared", others: 1, want: []string{"foo/shared-twice-xhqeapur exclusive other0"}, least: 3},
		"deletion":                      {purpose: "exclusive", delete: true, want: nil, least: 3},
		"deletion, the status was lost": {purpose: "exclusive", delete: true, status: true, want: nil, least: 4},
		"deletion of one of two":        {purpose: "shared", others: 1, delete: true, want: []string{"foo/shared-twice-xhqeapur other0"}, least: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				f := newFixture(t, testConfig)
				for i := range test.others {
					f.ask(test.purpose, fmt.Sprintf("foo/other%d", i))
				}
				request := newRequest("foo/exclusive", test.purpose)
				if test.randomized {
					request.Labels = map[string]string{v1alpha1.RandomizeClusterNameLabel: "true"}
				}
				f.create(request)
				if test.delete {
					f.settle("foo/exclusive")
					f.provide(f.request("foo/exclusive").Status.Cluster.NamespacedName().String())
					if test.status {
						f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) { r.Status = v1alpha1.ClusterRequestStatus{} })
					}
					f.delete(f.request("foo/exclusive"))
				}
				f.writes, f.killAfter = nil, n
				for range 10 {
					if _, err := f.process.Reconcile(t.Context(), requestFor("foo", "exclusive")); f.dead {
						break
					} else if err != nil {
						t.Fatal(err)
					}
				}
				finished, done := !f.dead, slices.Clone(f.writes)
				f.restart()
				f.settle("foo/exclusive")
				if test.delete {
					for _, cluster := range f.clusters() {
						key, rest, _ := strings.Cut(cluster, " ")
						if f.gone("foo/exclusive") != (test.others > 0) {
							t.Errorf("killed after %q: the request is gone too early, or late", done)
						}
						if strings.HasSuffix(rest, "deleted") {
							f.removeByProvider(key)
						} else {
							f.changeCluster(key, func(c *v1alpha1.Cluster) {
								c.Finalizers = slices.DeleteFunc(c.Finalizers, func(s string) bool { return strings.HasPrefix(s, "provider") })
							})
						}
					}
					f.settle("foo/exclusive")
					if !f.gone("foo/exclusive") {
						t.Errorf("killed after %q: the request stays", done)
					}
				} else if !f.request("foo/exclusive").Status.IsGranted() {
					t.Errorf("killed after %q: %s", done, f.answer("foo/exclusive"))
				}
				if got := f.clusters(); test.randomized && len(got) != 1 || !test.randomized && !slices.Equal(got, test.want) {
					t.Errorf("killed after %q: %q, want %q", done, got, test.want)
				}
				if t.Failed() || finished {
					if n <= test.least {
						t.Fatalf("only %d writes: %q", n-1, done)
					}
					return
				}
			}
		})
	}
}

// Several concurrent processes, none of which knows of the others, never give a cluster to more requests than may have it. A request that has got
// two in that way keeps one.
func TestConcurrency_LimitIsNotExceeded(t *testing.T) {
	const processes, requests = 6, 41
	f := newFixture(t, testConfig)
	for i := range requests {
		f.create(newRequest(fmt.Sprintf("foo/r%02d", i), "shared"))
	}
	var all sync.WaitGroup
	for p := range processes {
		process := newReconciler(f.client, f.client, func() *Config { return f.config }, f.events)
		all.Go(func() {
			for i := range requests {
				for {
					result, err := process.Reconcile(t.Context(), requestFor("foo", fmt.Sprintf("r%02d", (i+p*7)%requests)))
					if err != nil {
						t.Error(err)
					}
					if result.RequeueAfter == 0 {
						break
					}
				}
			}
		})
	}
	all.Wait()
	for i := range requests {
		f.settle(fmt.Sprintf("foo/r%02d", i))
	}
	held := map[string]int{}
	for _, cluster := range f.clusters() {
		holders := strings.Fields(cluster)[1:]
		if len(holders) > 2 {
			t.Errorf("too many: %s", cluster)
		}
		for _, holder := range holders {
			held[holder]++
		}
	}
	for i := range requests {
		key := fmt.Sprintf("r%02d", i)
		if held[key] != 1 || !f.request("foo/"+key).Status.IsGranted() {
			t.Errorf("%s has %d clusters, %s", key, held[key], f.answer("foo/"+key))
		}
	}
}

// A decision on a stale version does not count: a cluster that another request has got since then is not deleted, and one that another request has
// released since then is not left over.
func TestConcurrency_StaleReleaseConflicts(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("unlimited", "foo/one")
	asked, old := f.request("foo/one"), f.cluster("foo/unlimited")
	f.ask("unlimited", "foo/two")
	if err := f.process.free(t.Context(), asked, old); !apierrors.IsConflict(err) {
		t.Errorf("freed: %v", err)
	}
	f.wantClusters("foo/unlimited one two")

	old = f.cluster("foo/unlimited")
	if err := f.process.free(t.Context(), asked, f.cluster("foo/unlimited")); err != nil {
		t.Fatal(err)
	}
	f.wantClusters("foo/unlimited two")
	if err := f.process.free(t.Context(), f.request("foo/two"), old); !apierrors.IsConflict(err) {
		t.Errorf("left behind: %v", err)
	}
	f.delete(f.request("foo/two"))
	f.settle("foo/two")
	f.wantClusters()
}
