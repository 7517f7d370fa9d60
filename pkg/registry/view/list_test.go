// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

// twoSets returns a hub with the sets a (region apac) and b (stage prod), and four clusters.
func twoSets(t testing.TB) *hub {
	h := newHub(t)
	h.set("b", labelled("stage=prod"))
	h.set("a", labelled("region=apac"))
	h.cluster("c4", labelled("stage=prod"))
	h.cluster("c1", labelled("region=apac", "stage=prod"))
	h.cluster("c3", labelled("region=emea"))
	h.cluster("c2", labelled("region=apac", "stage=dev"))
	return h
}

func TestList_OrderedBySetAndCluster(t *testing.T) {
	h := twoSets(t)
	h.set("empty", labelled("region=mars"))
	h.set("nothing", nil)
	expectNames(t, h.client(h.replica(), admin).names(), "c1.a", "c2.a", "c1.b", "c4.b")
}

// TestList_InvalidNamesMatchNothing: invalid names match nothing; in a key they would be path elements.
func TestList_InvalidNamesMatchNothing(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a", ".", "..", "a/c1", "a/", "")
	r := h.replica()
	ann := h.client(r, someone("ann"))
	ann.awaitNames("c1.a", "c2.a")
	for _, who := range []client{ann, h.client(r, admin)} {
		for _, selector := range []string{
			"spec.clusterSet=..", "spec.clusterSet=.", "spec.clusterSet=a/c1", "spec.clusterSet=a/", "spec.clusterSet=A",
			"spec.clusterSet=a,spec.cluster=..", "spec.clusterSet=a,spec.cluster=.", "spec.cluster=..",
			"metadata.name=a...", "metadata.name=a..", "metadata.name=..", "metadata.name=c1", "metadata.name=c1.",
		} {
			expectNames(t, who.names(byFields(selector)))
			expectNames(t, who.names(byFields(selector), version("0")))
			if _, err := who.tryWatch(t.Context(), byFields(selector)); err != nil {
				t.Errorf("watch of %s: %v", selector, err)
			}
		}
		for _, name := range []string{"a...", "a..", "..", "...", "c1.a/", "c1/.a"} {
			if _, err := r.Get(as(t.Context(), who.who), name, &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("get %q: %v, want 404", name, err)
			}
		}
		if _, err := who.tryWatch(t.Context(), version("x")); !apierrors.IsBadRequest(err) {
			t.Errorf("a watch from version x: %v, want 400", err)
		}
	}
}

func TestList_Empty(t *testing.T) {
	h := newHub(t)
	got := h.client(h.replica(), admin).list()
	if len(got.Items) != 0 || got.ResourceVersion == "" || got.Continue != "" {
		t.Errorf("got %d items at version %q, want none, at a version", len(got.Items), got.ResourceVersion)
	}
}

func TestList_MemberFields(t *testing.T) {
	h := newHub(t)
	set := h.set("s", labelled("region=apac"))
	c := h.cluster("c", labelled("region=apac", "stage=prod"), func(c *cluster.ManagedCluster) {
		c.Spec.HubAcceptsClient = true
		c.Spec.Taints = []cluster.Taint{{Key: "gpu", Value: "true", Effect: cluster.TaintEffectNoSelect}, {Key: "x",
			Effect: cluster.TaintEffectPreferNoSelect}}
		c.Status.Version.Kubernetes = "v1.37.1"
		c.Status.Conditions = []metav1.Condition{{Type: cluster.ManagedClusterConditionAvailable,
			Status: metav1.ConditionFalse}}
	})
	m := h.client(h.replica(), admin).list().Items[0]
	if m.Name != "c.s" || m.Namespace != "" || m.UID == "" || m.ResourceVersion == "" || m.CreationTimestamp.IsZero() {
		t.Errorf("metadata is %+v", m.ObjectMeta)
	}
	if later := c.CreationTimestamp; !m.CreationTimestamp.Equal(&later) || !set.CreationTimestamp.Before(&later) {
		t.Errorf("created %s, want that of the cluster, which came after the set: %s", m.CreationTimestamp, later)
	}
	if m.Labels["stage"] != "prod" || m.Spec.Cluster != "c" || m.Spec.ClusterSet != "s" {
		t.Errorf("labels %v, spec %+v", m.Labels, m.Spec)
	}
	s := m.Status
	if !s.Accepted || s.Joined != metav1.ConditionUnknown || s.Available != metav1.ConditionFalse || s.KubernetesVersion != "v1.37.1" ||
		!slices.Equal(s.Taints, []string{"gpu=true:NoSelect", "x:PreferNoSelect"}) ||
		s.SelectedBy.Type != "LabelSelector" || s.SelectedBy.Selector != "region=apac" {
		t.Errorf("status is %+v", s)
	}
}

func TestList_FieldAndLabelSelectors(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	h.front.allow("all", "*")
	h.client(r, someone("all")).awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	for _, tc := range []struct {
		name    string
		options []option
		all     []string
		ann     []string
	}{
		{"by set", []option{byFields("spec.clusterSet=b")}, []string{"c1.b", "c4.b"}, nil},
		{"by cluster", []option{byFields("spec.cluster=c1")}, []string{"c1.a", "c1.b"}, []string{"c1.a"}},
		{"by both", []option{byFields("spec.cluster=c1,spec.clusterSet=a")}, []string{"c1.a"}, []string{"c1.a"}},
		{"by name", []option{byFields("metadata.name=c4.b")}, []string{"c4.b"}, nil},
		{"by a name of no member", []option{byFields("metadata.name=c4")}, nil, nil},
		{"by two that exclude each other", []option{byFields("metadata.name=c4.b,spec.clusterSet=a")}, nil, nil},
		{"not a set", []option{byFields("spec.clusterSet!=a")}, []string{"c1.b", "c4.b"}, nil},
		{"by a set that is not", []option{byFields("spec.clusterSet=z")}, nil, nil},
		{"by a prefix of a set's name", []option{byFields("spec.clusterSet=")}, nil, nil},
		{"by label", []option{byLabels("stage=prod")}, []string{"c1.a", "c1.b", "c4.b"}, []string{"c1.a"}},
		{"by label and set", []option{byLabels("stage=prod"), byFields("spec.clusterSet=a")}, []string{"c1.a"},
			[]string{"c1.a"}},
		{"by no label", []option{byLabels("!region")}, []string{"c4.b"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, form := range []struct {
				name    string
				options []option
			}{{"latest", nil}, {"from the cache", []option{version("0")}}, {"limited", []option{limit(500)}}} {
				t.Run(form.name, func(t *testing.T) {
					options := append(slices.Clone(tc.options), form.options...)
					expectNames(t, h.client(r, admin).names(options...), tc.all...)
					expectNames(t, h.client(r, someone("all")).names(options...), tc.all...)
					expectNames(t, h.client(r, someone("ann")).names(options...), tc.ann...)
				})
			}
		})
	}
}

// TestList_ReadsAcknowledgedWritesOfAnyReplica: a write that one replica acknowledged is in the next list of every other, without waiting for
// the period of etcd's progress notifications.
func TestList_ReadsAcknowledgedWritesOfAnyReplica(t *testing.T) {
	h := newHub(t)
	replicas := []*clustersetmember.REST{h.replica(), h.replica()}
	h.set("s", map[string]string{})
	var want []string
	start := time.Now()
	const writes = 20
	for i := range writes {
		name := fmt.Sprintf("c%02d", i)
		h.cluster(name, nil)
		want = append(want, name+".s")
		expectNames(t, h.client(replicas[i%2], admin).names(), want...)
	}
	if took := time.Since(start); took > writes*time.Second {
		t.Errorf("%d writes and lists took %s", writes, took)
	}
}

// TestList_UnrelatedWriteDoesNotDelay: an unrelated write increments etcd's revision, too, and a list must wait for the information that it
// changed no member. Progress is requested: etcd itself reports it only every few seconds.
func TestList_UnrelatedWriteDoesNotDelay(t *testing.T) {
	server := ownEtcd(t)
	h := newHubOn(t, server)
	r := h.replica()
	h.awaitVisibility(r)
	etcd := etcdClient(t, server)
	start := time.Now()
	const writes = 5
	for i := range writes {
		_, err := etcd.Put(t.Context(), "/elsewhere", fmt.Sprint(i))
		must(t, err)
		h.client(r, admin).list()
	}
	if took := time.Since(start); took > writes*time.Second {
		t.Errorf("%d writes and lists took %s", writes, took)
	}
}

// betweenLists calls a function after the first range that a request reads.
type betweenLists struct {
	visibility.Source
	once func()
}

func (s *betweenLists) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	err := s.Source.GetList(ctx, key, opts, list)
	if f := s.once; f != nil {
		s.once = nil
		f()
	}
	return err
}

// readingFrom returns a replica that reads its members from another source.
func readingFrom(r *clustersetmember.REST, source visibility.Source) *clustersetmember.REST {
	other := *r.REST
	other.Visible.Objects = source
	return &clustersetmember.REST{REST: &other}
}

func TestList_SeveralSetsAtOneVersion(t *testing.T) {
	h := twoSets(t)
	h.front.allow("ann", "a", "b")
	r := h.replica()
	ann := h.client(r, someone("ann"))
	ann.awaitNames("c1.a", "c2.a", "c1.b", "c4.b")
	direct := r.Visible.Objects
	r.Visible.Objects = &betweenLists{direct, func() {
		h.deleteCluster("c1")
		expectNames(t, h.client(readingFrom(r, direct), admin).names(), "c2.a", "c4.b")
	}}
	list := ann.list()
	expectNames(t, namesOf(list), "c1.a", "c2.a", "c1.b", "c4.b")
	ann.watch(version(list.ResourceVersion)).expect("DELETED c1.a", "DELETED c1.b")
}

// TestList_VersionIsEqualOnAllReplicas: the version of a list is derived from etcd's, so it is the same on every replica and after a restart.
func TestList_VersionIsEqualOnAllReplicas(t *testing.T) {
	h := newHubOn(t, ownEtcd(t))
	first, stop := h.stoppableReplica()
	h.set("s", map[string]string{})
	h.cluster("c", nil)
	second := h.replica()
	h.awaitVisibility(first, second)
	want := h.client(first, admin).list().ResourceVersion
	if got := h.client(second, admin).list().ResourceVersion; got != want {
		t.Errorf("another replica's list is at %s, want %s", got, want)
	}
	stop()
	if got := h.client(h.replica(), admin).list().ResourceVersion; got != want {
		t.Errorf("after a restart the list is at %s, want %s", got, want)
	}
}

func TestList_WaitsForFutureVersion(t *testing.T) {
	h := newHub(t)
	c := h.client(h.replica(), admin)
	h.set("s", map[string]string{})
	written := h.cluster("c", nil)
	at := fmt.Sprint(position.Version(number(t, written.ResourceVersion), 0))
	expectNames(t, c.names(notOlderThan(at)), "c.s")
	future := fmt.Sprint(position.Version(number(t, written.ResourceVersion)+1_000_000, 0))
	if _, err := c.tryList(notOlderThan(future)); !apierrors.IsTimeout(err) {
		t.Errorf("a version of the future: got %v, want a timeout", err)
	}
}

func TestList_ExactVersion(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a")
	ann, root := h.client(r, someone("ann")), h.client(r, admin)
	ann.awaitNames("c1.a", "c2.a")
	past := root.list().ResourceVersion
	h.deleteCluster("c1")
	expectNames(t, root.names(), "c2.a", "c4.b")
	expectNames(t, root.names(exactly(past)), "c1.a", "c2.a", "c1.b", "c4.b")
	expectNames(t, ann.names(exactly(past)), "c1.a", "c2.a")
	expectNames(t, root.names(exactly(past), byFields("metadata.name=c1.a")), "c1.a")
	if got := root.list(exactly(past)).ResourceVersion; got != past {
		t.Errorf("the list is at %s, want %s", got, past)
	}
	// Clients that page from a version without resourceVersionMatch mean exactly this one.
	page := root.list(version(past), limit(1))
	expectNames(t, namesOf(page), "c1.a")
}

func TestList_VersionBeforeStartIsGone(t *testing.T) {
	h := twoSets(t)
	past := fmt.Sprint(position.Version(number(t, h.relabel("c3", nil).ResourceVersion), position.End))
	h.cluster("c5", nil)
	c := h.client(h.replica(), admin)
	if _, err := c.tryList(exactly(past)); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v, want 410 Expired", err)
	}
}

func TestList_PagesAreOfOneVersion(t *testing.T) {
	h := newHub(t)
	for _, set := range []string{"a", "a-b", "ab", "b"} {
		h.set(set, labelled(set+"=in"))
	}
	h.set("empty", labelled("none=in"))
	for i := range 3 {
		h.cluster(fmt.Sprintf("c%d", i), labelled("a=in", "a-b=in", "ab=in", "b=in"))
	}
	r := h.replica()
	h.front.allow("some", "a", "a-b", "b", "empty", "not-there")
	h.front.allow("all", "*")
	all := h.client(r, admin).names()
	some := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name[3:] == "ab" })
	h.client(r, someone("all")).awaitNames(all...)
	h.client(r, someone("some")).awaitNames(some...)

	extra := 0
	for _, who := range []struct {
		client client
		want   []string
	}{
		{h.client(r, admin), all}, {h.client(r, someone("all")), all}, {h.client(r, someone("some")), some},
	} {
		for size := int64(1); size <= 13; size++ {
			t.Run(fmt.Sprintf("%s by %d", who.client.who.GetName(), size), func(t *testing.T) {
				who.client.t = t
				var got []string
				page := who.client.list(limit(size))
				at := page.ResourceVersion
				for {
					if int64(len(page.Items)) > size {
						t.Fatalf("a page of %d members, want %d at the most", len(page.Items), size)
					}
					if page.ResourceVersion != at {
						t.Errorf("a page is at %s, the first at %s", page.ResourceVersion, at)
					}
					got = append(got, namesOf(page)...)
					if page.Continue == "" {
						break
					}
					// Changes in between are not in the pages that follow.
					extra++
					name := fmt.Sprintf("a0-%d", extra)
					h.cluster(name, labelled("a=in", "b=in"))
					page = who.client.list(limit(size), continued(page.Continue))
					h.deleteCluster(name)
				}
				expectNames(t, got, who.want...)
			})
		}
	}
}

func TestList_RejectsInvalidContinueToken(t *testing.T) {
	h := twoSets(t)
	r := h.replica()
	h.front.allow("ann", "a")
	h.client(r, someone("ann")).awaitNames("c1.a", "c2.a")
	for _, who := range []client{h.client(r, admin), h.client(r, someone("ann"))} {
		if _, err := who.tryList(limit(1), continued("!")); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v, want 400", who.who.GetName(), err)
		}
	}
}
