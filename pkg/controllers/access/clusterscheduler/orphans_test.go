// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// reclaim releases a cluster of requests that are gone.
func (f *fixture) reclaim(key string) {
	f.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	if _, err := (orphans{scheduler: f.process}).Reconcile(f.Context(), requestFor(namespace, name)); err != nil {
		f.Fatal(err)
	}
}

// purge removes the finalizers of a request by hand.
func (f *fixture) purge(key string) {
	f.Helper()
	f.delete(f.request(key))
	request := f.request(key)
	request.Finalizers = nil
	if err := f.client.Update(f.Context(), request); err != nil {
		f.Fatal(err)
	}
}

func TestOrphans_ClusterIsReleased(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("shared", "foo/one", "foo/two")
	name := "foo/" + f.request("foo/one").Status.Cluster.Name
	one := f.request("foo/one")
	f.purge("foo/one")
	f.wantClusters(name + " one two")
	if held := f.process.clustersHeldBy(t.Context(), one); len(held) != 1 || held[0].String() != name {
		t.Errorf("the end of the request is an event of %v", held)
	}
	f.reclaim(name)
	f.wantClusters(name + " two")
	// The cluster can be given to another one again.
	f.ask("shared", "foo/three")
	f.wantClusters(name + " three two")
	// It is deleted with the last one, however that was deleted.
	f.purge("foo/two")
	f.purge("foo/three")
	f.reclaim(name)
	f.wantClusters()
}

func TestOrphans_OnlyOrphansAreReleased(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("unlimited", "foo/one")
	f.ask("exclusive", "foo/exclusive")
	f.delete(f.request("foo/one")) // it must still release it itself
	f.writes = nil
	f.reclaim("foo/unlimited")
	f.reclaim("foo/exclusive-qilq5nsb")
	if len(f.writes) > 0 {
		t.Errorf("written: %q", f.writes)
	}
	// The cache does not have an object that was just created.
	late := newFixture(t, testConfig)
	f.process.client = late.client
	if gone, err := f.process.gone(t.Context(), sets.New("uid-of-one", "uid-of-nobody")); err != nil || !slices.Equal(sets.List(gone), []string{"uid-of-nobody"}) {
		t.Errorf("gone are %v, %v", gone, err)
	}
}

// After a restore all requests have different UIDs, and their clusters the earlier finalizers.
func TestOrphans_RestoredRequestRetainsCluster(t *testing.T) {
	f := newFixture(t, testConfig, newCluster("foo/exclusive-qilq5nsb", "exclusive", exclusive, "before"))
	f.changeCluster("foo/exclusive-qilq5nsb", func(c *v1alpha1.Cluster) { c.Labels = map[string]string{v1alpha1.DeleteWithoutRequestsLabel: "true"} })
	f.create(newRequest("foo/exclusive", "exclusive"))
	f.change("foo/exclusive", func(r *v1alpha1.ClusterRequest) {
		r.Status.Cluster = &v1alpha1.ObjectReference{Namespace: "foo", Name: "exclusive-qilq5nsb"}
	})
	f.reclaim("foo/exclusive-qilq5nsb")
	f.wantClusters("foo/exclusive-qilq5nsb")
	f.settle("foo/exclusive")
	f.wantClusters("foo/exclusive-qilq5nsb exclusive")
}

// Concurrent changes of the cluster count.
func TestOrphans_ClusterIsReclaimedAtCurrentVersion(t *testing.T) {
	f := newFixture(t, testConfig)
	f.ask("unlimited", "foo/one")
	f.purge("foo/one")
	old := f.cluster("foo/unlimited")
	f.ask("unlimited", "foo/two")
	if err := (orphans{scheduler: f.process}).reclaim(t.Context(), old, "uid-of-one"); !apierrors.IsConflict(err) {
		t.Errorf("reclaimed: %v", err)
	}
	f.wantClusters("foo/unlimited one two")
}

func TestOrphans_SearchedOnAssignment(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []string
		want          bool
	}{"given": {nil, []string{"a"}, true}, "given on": {[]string{"a"}, []string{"b"}, true}, "left": {[]string{"a", "b"}, []string{"a"}, false}} {
		e := event.UpdateEvent{ObjectOld: newCluster("foo/a", "p", shared, test.before...), ObjectNew: newCluster("foo/a", "p", shared, test.after...)}
		if onCreateOrAssign().Update(e) != test.want {
			t.Errorf("%s: %t", name, !test.want)
		}
	}
}

// A request that waits for a profile is enqueued when that is created.
func TestProfiles_EnqueueWaitingRequests(t *testing.T) {
	f := newFixture(t, testConfig)
	f.create(newRequest("foo/waits", "unlimited"))
	f.create(newRequest("foo/other", "unknown"))
	f.ask("exclusive", "foo/granted")
	profile := &v1alpha1.ClusterProfile{}
	for name, want := range map[string]int{"p": 1, "another": 0} {
		profile.Name = name
		if got := f.process.requestsFor(t.Context(), profile); len(got) != want || want == 1 && got[0].Name != "waits" {
			t.Errorf("%s: %v", name, got)
		}
	}
}
