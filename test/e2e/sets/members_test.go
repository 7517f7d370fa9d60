// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	viewclient "github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/typed/view/v1alpha1"
	informers "github.com/clusterhub/clusterhub/pkg/generated/informers/externalversions"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func memberClient(t *testing.T, config *rest.Config) viewclient.ClusterSetMemberInterface {
	t.Helper()
	return harness.Ours(t, config).ViewV1alpha1().ClusterSetMembers()
}

// collectUntilClosed returns n events of a watch without bookmarks, or fewer if the server closes the watch: because it cannot keep up with the
// events, or because a replica has observed the rules later than a different one.
func collectUntilClosed(t *testing.T, w watch.Interface, n int) []watch.Event {
	t.Helper()
	var events []watch.Event
	deadline := time.After(harness.Timeout)
	for len(events) < n {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return events
			}
			if e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
				return events
			}
			if e.Type == watch.Error {
				t.Fatalf("the watch failed: %v", apierrors.FromObject(e.Object))
			}
			if e.Type != watch.Bookmark {
				events = append(events, e)
			}
		case <-deadline:
			t.Fatalf("%d of %d events: %v", len(events), n, events)
		}
	}
	return events
}

func member(e watch.Event) *viewv1alpha1.ClusterSetMember {
	return e.Object.(*viewv1alpha1.ClusterSetMember)
}

func TestMembers_ListReadsWritesOfAnyReplica(t *testing.T) {
	set := harness.Unique("set")
	harness.NewSet(t, set)
	writer := harness.Ours(t, harness.Hub(t).HubAPIServerConfig(0)).ClusterV1().ManagedClusters()
	reader := memberClient(t, harness.Hub(t).HubAPIServerConfig(1))
	for i := range 50 {
		name := harness.Unique("cluster")
		harness.Must(writer.Create(t.Context(), harness.ManagedCluster(name, map[string]string{harness.SetLabel: set}), metav1.CreateOptions{}))(t)
		t.Cleanup(func() { _ = writer.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
		list := harness.Must(reader.List(t.Context(), harness.InSet(set)))(t)
		if len(list.Items) != i+1 {
			t.Fatalf("%d clusters have joined, %d are listed", i+1, len(list.Items))
		}
	}
}

// TestMembers_WatchResumesInsideBatchOnOtherReplica verifies this for a change of a set that moves many members at one revision of etcd.
func TestMembers_WatchResumesInsideBatchOnOtherReplica(t *testing.T) {
	const n = 40
	fleet, names := harness.NewFleet(t, n)
	moving := harness.NewLabelSet(t, harness.Unique("moving"), map[string]string{"fleet": "none"})
	clients := []viewclient.ClusterSetMemberInterface{memberClient(t, harness.Hub(t).HubAPIServerConfig(0)), memberClient(t, harness.Hub(t).HubAPIServerConfig(1))}
	start := harness.Must(clients[0].List(t.Context(), harness.InSet(moving.Name)))(t).ResourceVersion
	if err := harness.ChangeSet(t, moving.Name, func(s *v1beta1.ManagedClusterSetSpec) {
		s.ClusterSelector.LabelSelector.MatchLabels["fleet"] = fleet
	}); err != nil {
		t.Fatal(err)
	}

	got := map[string]int{}
	began := time.Now()
	for i := 0; len(got) < n; i++ {
		if time.Since(began) > harness.Timeout {
			t.Fatalf("got %d of %d members with %d watches", len(got), n, i)
		}
		options := harness.InSet(moving.Name)
		options.ResourceVersion = start
		w := harness.Must(clients[i%2].Watch(t.Context(), options))(t)
		// A batch may be larger than a watch on a busy machine can deliver. The next watch resumes, as after 7 events.
		for _, e := range collectUntilClosed(t, w, min(7, n-len(got))) {
			if e.Type != watch.Added {
				t.Errorf("a %s event of %s", e.Type, member(e).Name)
			}
			got[member(e).Spec.Cluster]++
			start = member(e).ResourceVersion
		}
		w.Stop()
	}
	if !slices.Equal(slices.Sorted(maps.Keys(got)), names) {
		t.Errorf("got %v, want %v", got, names)
	}
	for name, times := range got {
		if times != 1 {
			t.Errorf("%s was added %d times", name, times)
		}
	}
}

func TestMembers_ChunksAreConsistentAndOrdered(t *testing.T) {
	const n = 23
	set, names := harness.NewFleet(t, n)
	for replica := range 2 {
		client := memberClient(t, harness.Hub(t).HubAPIServerConfig(replica))
		var got []string
		options := harness.InSet(set)
		options.Limit = 5
		extra := fmt.Sprintf("%s-000-%d", set, replica)
		for page := 0; ; page++ {
			list := harness.Must(client.List(t.Context(), options))(t)
			for _, m := range list.Items {
				got = append(got, m.Spec.Cluster)
			}
			if page == 0 {
				harness.NewManagedCluster(t, extra, map[string]string{"fleet": set})
			}
			if list.Continue == "" {
				break
			}
			options.Continue = list.Continue
		}
		if !slices.Equal(got, names) {
			t.Errorf("replica %d: got %v, want %v", replica, got, names)
		}
		if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), extra, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMembers_ChunksAcrossVisibleSets lists the same chunks as a user who may see some sets only, which are separate ranges of the store.
func TestMembers_ChunksAcrossVisibleSets(t *testing.T) {
	a, namesA := harness.NewFleet(t, 7)
	harness.NewFleet(t, 5)
	b, namesB := harness.NewFleet(t, 6)
	who := harness.User(t, harness.Rule("get", "managedclustersets", a, b))
	client := memberClient(t, harness.Hub(t).UserConfig(who))
	want := append(slices.Clone(namesA), namesB...)
	if a > b {
		want = append(slices.Clone(namesB), namesA...)
	}
	for _, limit := range []int64{1, 4, 7, 100} {
		harness.Eventually(t, "the visible members in chunks", func(ctx context.Context) (bool, error) {
			var got []string
			options := metav1.ListOptions{Limit: limit}
			for {
				list, err := client.List(ctx, options)
				if err != nil {
					return false, err
				}
				for _, m := range list.Items {
					got = append(got, m.Spec.Cluster)
				}
				if list.Continue == "" {
					break
				}
				options.Continue = list.Continue
			}
			if !slices.Equal(got, want) {
				return false, fmt.Errorf("limit %d: got %v, want %v", limit, got, want)
			}
			return true, nil
		})
	}
}

// TestMembers_GrantAndRevocationReachOpenWatch uses an informer, as clients do: a replica may end a watch when rules change.
func TestMembers_GrantAndRevocationReachOpenWatch(t *testing.T) {
	set, names := harness.NewFleet(t, 3)
	who := harness.Unique("watcher")
	for replica := range 2 {
		factory := informers.NewSharedInformerFactory(harness.Ours(t, harness.Hub(t).HubAPIServerUserConfig(replica, who, "system:authenticated")), 0)
		lister := factory.View().V1alpha1().ClusterSetMembers().Lister()
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		sees := func(what string, want ...string) {
			t.Helper()
			harness.Eventually(t, what, func(context.Context) (bool, error) {
				var got []string
				for _, m := range harness.Must(lister.List(labels.Everything()))(t) {
					got = append(got, m.Spec.Cluster)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					return false, fmt.Errorf("replica %d: got %v, want %v", replica, got, want)
				}
				return true, nil
			})
		}
		sees("nothing is visible without a right")
		right := harness.Unique("grant")
		t.Run("grant", func(t *testing.T) {
			harness.Grant(t, harness.Hub(t), right, who, harness.Rule("get", "managedclustersets", set))
			sees("a grant", names...)
			// Events of the set are received, events of others are not.
			harness.NewManagedCluster(t, harness.Unique("elsewhere"), nil)
			harness.NewManagedCluster(t, set+"-more", map[string]string{"fleet": set})
			sees("a new member", append(slices.Clone(names), set+"-more")...)
			if err := harness.Admin(t).ClusterV1().ManagedClusters().Delete(t.Context(), set+"-more", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			sees("a member that has left", names...)
		})
		// The end of the subtest revoked the right.
		sees("a revocation")
		if list := harness.Must(memberClient(t, harness.Hub(t).UserConfig(who)).List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 0 {
			t.Errorf("after the revocation, %d members are listed", len(list.Items))
		}
	}
}

func TestMembers_GetRequiresSet(t *testing.T) {
	set, names := harness.NewFleet(t, 1)
	name := names[0] + "." + set
	stranger, friend := harness.User(t), harness.User(t, harness.Rule("get", "managedclustersets", set))
	for _, path := range []func(string, ...string) *rest.Config{harness.Hub(t).UserConfig, func(u string, g ...string) *rest.Config {
		return harness.Hub(t).HubAPIServerUserConfig(1, u, "system:authenticated")
	}} {
		_, err := memberClient(t, path(stranger)).Get(t.Context(), name, metav1.GetOptions{})
		harness.WantForbidden(t, err, "managedclustersets", set)
		_, missing := memberClient(t, path(stranger)).Get(t.Context(), "nobody."+set, metav1.GetOptions{})
		harness.WantForbidden(t, missing)
		if m := harness.Must(memberClient(t, path(friend)).Get(t.Context(), name, metav1.GetOptions{}))(t); m.Spec.Cluster != names[0] {
			t.Errorf("got %+v", m)
		}
		_, err = memberClient(t, path(friend)).Get(t.Context(), "nobody."+set, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want a 404", err)
		}
	}
}

func TestMembers_ClusterInTwoSetsIsTwoMembers(t *testing.T) {
	set, names := harness.NewFleet(t, 1)
	second := harness.NewLabelSet(t, harness.Unique("second"), map[string]string{"fleet": set})
	options := metav1.ListOptions{FieldSelector: "spec.cluster=" + names[0]}
	want := []string{"default", "global", set, second.Name}
	slices.Sort(want)
	// A new hub creates the sets default and global asynchronously.
	harness.Eventually(t, "all sets of the cluster", func(ctx context.Context) (bool, error) {
		list, err := memberClient(t, harness.Hub(t).AdminConfig()).List(ctx, options)
		if err != nil {
			return false, err
		}
		var sets []string
		uids := map[string]bool{}
		for _, m := range list.Items {
			sets = append(sets, m.Spec.ClusterSet)
			uids[string(m.UID)] = true
		}
		slices.Sort(sets)
		if !slices.Equal(sets, want) || len(uids) != len(want) {
			return false, fmt.Errorf("got %v with %d uids, want %v", sets, len(uids), want)
		}
		return true, nil
	})
}

func TestMembers_ResourceVersionSemantics(t *testing.T) {
	set, names := harness.NewFleet(t, 2)
	client := memberClient(t, harness.Hub(t).AdminConfig())
	before := harness.Must(client.List(t.Context(), harness.InSet(set)))(t)
	harness.NewManagedCluster(t, set+"-late", map[string]string{"fleet": set})
	list := func(version string, match metav1.ResourceVersionMatch) (int, error) {
		options := harness.InSet(set)
		options.ResourceVersion, options.ResourceVersionMatch = version, match
		l, err := client.List(t.Context(), options)
		if err != nil {
			return 0, err
		}
		return len(l.Items), nil
	}
	if n, err := list(before.ResourceVersion, metav1.ResourceVersionMatchExact); err != nil || n != len(names) {
		t.Errorf("exactly at %s: %d, %v", before.ResourceVersion, n, err)
	}
	if n, err := list(before.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan); err != nil || n < len(names) {
		t.Errorf("not older than %s: %d, %v", before.ResourceVersion, n, err)
	}
	if _, err := list("0", metav1.ResourceVersionMatchNotOlderThan); err != nil {
		t.Errorf("any: %v", err)
	}
	if n, err := list("", ""); err != nil || n != len(names)+1 {
		t.Errorf("the latest: %d, %v", n, err)
	}
	version := harness.Must(strconv.ParseUint(before.ResourceVersion, 10, 64))(t)
	// A client retries this by itself; one attempt is enough here.
	err := restClientOfView(t, harness.Hub(t).AdminConfig()).Get().Resource("clustersetmembers").
		Param("resourceVersion", strconv.FormatUint(version+1<<40, 10)).MaxRetries(0).Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) {
		t.Errorf("a version to come: %v, want a timeout", err)
	}
	if _, err := list("1", metav1.ResourceVersionMatchExact); !apierrors.IsResourceExpired(err) {
		t.Errorf("a version long gone: %v, want a 410", err)
	}
	if _, err := list("nonsense", ""); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("nonsense: %v, want a 4xx", err)
	}
	w := harness.Must(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))(t)
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("a watch from long ago: %v %v, want a 410", e.Type, e.Object)
	}
}

func TestMembers_AreReadOnly(t *testing.T) {
	for _, verb := range []string{"create", "delete"} {
		var err error
		client := restClientOfView(t, harness.Hub(t).AdminConfig())
		if verb == "create" {
			err = client.Post().Resource("clustersetmembers").Body([]byte(`{"apiVersion":"view.clusterhub.dev/v1alpha1","kind":"ClusterSetMember","metadata":{"name":"a.b"}}`)).Do(t.Context()).Error()
		} else {
			err = client.Delete().Resource("clustersetmembers").Name("a.b").Do(t.Context()).Error()
		}
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v, want a 405", verb, err)
		}
	}
}

func restClientOfView(t *testing.T, config *rest.Config) rest.Interface {
	t.Helper()
	return harness.Ours(t, config).ViewV1alpha1().RESTClient()
}
