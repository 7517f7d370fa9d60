// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

func TestSelector_DeterminesMembers(t *testing.T) {
	clusters := []*cluster.ManagedCluster{
		newCluster("bare"),
		newCluster("other", "k", "b", "l", "1"),
		newCluster("both", "k", "a", "l", "9"),
		newCluster("legacy", cluster.ClusterSetLabel, "s"),
		newCluster("elsewhere", cluster.ClusterSetLabel, "t", "k", ""),
	}
	for _, tc := range []struct {
		name     string
		selector cluster.ManagedClusterSelector
		want     []string
		by       view.SelectedBy
	}{
		{"legacy", legacy(), []string{"legacy.s"}, view.SelectedBy{Type: "LegacyClusterSetLabel",
			Selector: cluster.ClusterSetLabel + "=s"}},
		{"no type is legacy", cluster.ManagedClusterSelector{}, []string{"legacy.s"},
			view.SelectedBy{Type: "LegacyClusterSetLabel", Selector: cluster.ClusterSetLabel + "=s"}},
		{"exclusive label", exclusive("k", "a"), []string{"both.s"}, view.SelectedBy{Type: "ExclusiveLabel",
			Selector: "k=a"}},
		{"exclusive label, empty value", exclusive("k", ""), []string{"elsewhere.s"},
			view.SelectedBy{Type: "ExclusiveLabel", Selector: "k="}},
		{"exclusive label of the legacy key", exclusive(cluster.ClusterSetLabel, "t"), []string{"elsewhere.s"},
			view.SelectedBy{Type: "ExclusiveLabel", Selector: cluster.ClusterSetLabel + "=t"}},
		{"exclusive label without a label", cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveLabel},
			nil, view.SelectedBy{}},
		{"no label selector", selecting(nil), nil, view.SelectedBy{}},
		{"the empty label selector", selecting(&metav1.LabelSelector{}), []string{"bare.s", "both.s", "elsewhere.s",
			"legacy.s", "other.s"}, view.SelectedBy{Type: "LabelSelector"}},
		{"two labels", matching("k", "a", "l", "9"), []string{"both.s"}, view.SelectedBy{Type: "LabelSelector",
			Selector: "k=a,l=9"}},
		{"two labels that nobody has", matching("k", "b", "l", "9"), nil, view.SelectedBy{}},
		{"in", requiring("k", metav1.LabelSelectorOpIn, "b", "a", "z"), []string{"both.s", "other.s"},
			view.SelectedBy{Type: "LabelSelector", Selector: "k in (a,b,z)"}},
		{"in, one value twice", requiring("k", metav1.LabelSelectorOpIn, "a", "a"), []string{"both.s"},
			view.SelectedBy{Type: "LabelSelector", Selector: "k in (a,a)"}},
		{"not in", requiring("k", metav1.LabelSelectorOpNotIn, "a"), []string{"bare.s", "elsewhere.s", "legacy.s",
			"other.s"}, view.SelectedBy{Type: "LabelSelector", Selector: "k notin (a)"}},
		{"exists", requiring("l", metav1.LabelSelectorOpExists), []string{"both.s", "other.s"},
			view.SelectedBy{Type: "LabelSelector", Selector: "l"}},
		{"does not exist", requiring("k", metav1.LabelSelectorOpDoesNotExist), []string{"bare.s", "legacy.s"},
			view.SelectedBy{Type: "LabelSelector", Selector: "!k"}},
		{"a type that is none", cluster.ManagedClusterSelector{SelectorType: "Other"}, nil, view.SelectedBy{}},
		{"an operator that is none", requiring("k", "Like", "a"), nil, view.SelectedBy{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			setFirst, setLast := New(), New()
			setFirst.SetSet(newSet("s", tc.selector))
			for _, c := range clusters {
				setFirst.SetCluster(c)
				setLast.SetCluster(c)
			}
			setLast.SetSet(newSet("s", tc.selector))
			expect(t, namesOf(setFirst), tc.want...)
			expect(t, namesOf(setLast), tc.want...)
			setFirst.Members(func(m *view.ClusterSetMember) {
				if m.Status.SelectedBy != tc.by {
					t.Errorf("selected by %+v, want %+v", m.Status.SelectedBy, tc.by)
				}
			})
		})
	}
}

func TestAnchor_IsMostSelectiveRequirement(t *testing.T) {
	for _, tc := range []struct {
		name     string
		selector cluster.ManagedClusterSelector
		want     string
		values   int
	}{
		{"everything", selecting(&metav1.LabelSelector{}), "", 0},
		{"nothing", selecting(nil), "", 0},
		{"equality", matching("k", "a"), "k", 1},
		{"in", requiring("k", metav1.LabelSelectorOpIn, "a", "b"), "k", 2},
		{"exists", requiring("k", metav1.LabelSelectorOpExists), "k", 0},
		{"negations", requiring("k", metav1.LabelSelectorOpNotIn, "a"), "", 0},
		{"absence", requiring("k", metav1.LabelSelectorOpDoesNotExist), "", 0},
		{"existence before equality", selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"z": "1"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a",
				Operator: metav1.LabelSelectorOpExists}}}), "z", 1},
		{"negation before existence",
			selecting(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist}, {Key: "b",
					Operator: metav1.LabelSelectorOpExists}}}), "b", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := New()
			x.SetSet(newSet("s", tc.selector))
			a := x.sets["s"].anchor
			if a.key != tc.want || len(a.values) != tc.values {
				t.Errorf("the anchor is %+v, want %s with %d values", a, tc.want, tc.values)
			}
			x.DeleteSet("s")
			expectEmpty(t, x)
		})
	}
}

// expectEmpty checks that nothing is left of removed objects.
func expectEmpty(t *testing.T, x *Index) {
	t.Helper()
	if n := len(x.clusters) + len(x.sets) + len(x.clustersByLabel) + len(x.setsByLabel) + len(x.setsByKey) + len(x.setsAny); n != 0 {
		t.Errorf("the index keeps %d entries of what is gone: %+v", n, x)
	}
}

func TestChanges_AreInOrder(t *testing.T) {
	x := New()
	expect(t, texts(x.SetSet(newSet("t", matching("k", "a")))))
	expect(t, texts(x.SetSet(newSet("s", matching("k", "a")))))
	expect(t, texts(x.SetCluster(newCluster("c2", "k", "a"))), "ADDED c2.s", "ADDED c2.t")
	expect(t, texts(x.SetCluster(newCluster("c1", "k", "a"))), "ADDED c1.s", "ADDED c1.t")
	expect(t, texts(x.SetCluster(newCluster("c3"))))
	expect(t, texts(x.SetSet(newSet("u", selecting(&metav1.LabelSelector{})))), "ADDED c1.u", "ADDED c2.u",
		"ADDED c3.u")
	expect(t, texts(x.SetCluster(newCluster("c1", "k", "b"))), "DELETED c1.s", "DELETED c1.t", "MODIFIED c1.u")
	expect(t, texts(x.SetSet(newSet("s", matching("k", "b")))), "ADDED c1.s", "DELETED c2.s")
	expect(t, texts(x.SetSet(newSet("u", requiring("k", metav1.LabelSelectorOpExists)))), "MODIFIED c1.u",
		"MODIFIED c2.u", "DELETED c3.u")
	expect(t, texts(x.DeleteCluster("c1")), "DELETED c1.s", "DELETED c1.u")
	expect(t, texts(x.DeleteSet("t")), "DELETED c2.t")
	expect(t, texts(x.DeleteSet("s")))
	expect(t, texts(x.DeleteSet("s")))
	expect(t, texts(x.DeleteCluster("never")))
	expect(t, texts(x.DeleteSet("u")), "DELETED c2.u")
	x.DeleteCluster("c2")
	x.DeleteCluster("c3")
	expectEmpty(t, x)
}

func TestChanges_OnlyOfMemberFields(t *testing.T) {
	base := func() *cluster.ManagedCluster { return newCluster("c", "k", "a") }
	for _, tc := range []struct {
		name   string
		change func(*cluster.ManagedCluster)
		shows  bool
	}{
		{"nothing", func(*cluster.ManagedCluster) {}, false},
		{"resourceVersion", func(c *cluster.ManagedCluster) { c.ResourceVersion = "9" }, false},
		{"annotations", func(c *cluster.ManagedCluster) { c.Annotations = map[string]string{"x": "y"} }, false},
		{"lease", func(c *cluster.ManagedCluster) { c.Spec.LeaseDurationSeconds = 9 }, false},
		{"another condition", condition("Other", metav1.ConditionTrue), false},
		{"a condition that says nothing", condition(cluster.ManagedClusterConditionJoined, "Whatever"), false},
		{"another label", func(c *cluster.ManagedCluster) { c.Labels["x"] = "y" }, true},
		{"accepted", func(c *cluster.ManagedCluster) { c.Spec.HubAcceptsClient = true }, true},
		{"joined", condition(cluster.ManagedClusterConditionJoined, metav1.ConditionTrue), true},
		{"available", condition(cluster.ManagedClusterConditionAvailable, metav1.ConditionFalse), true},
		{"version", func(c *cluster.ManagedCluster) { c.Status.Version.Kubernetes = "v1.37.1" }, true},
		{"taints", func(c *cluster.ManagedCluster) {
			c.Spec.Taints = []cluster.Taint{{Key: "x",
				Effect: "NoSelect"}}
		}, true},
		{"another cluster of the name", func(c *cluster.ManagedCluster) { c.UID = "new" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := New()
			x.SetSet(newSet("s", matching("k", "a")))
			x.SetCluster(base())
			changed := base()
			tc.change(changed)
			got := texts(x.SetCluster(changed))
			if tc.shows {
				expect(t, got, "MODIFIED c.s")
			} else {
				expect(t, got)
			}
		})
	}
	x := New()
	x.SetCluster(base())
	x.SetSet(newSet("s", matching("k", "a")))
	again := newSet("s", matching("k", "a"))
	again.Status.Conditions = []metav1.Condition{{Type: cluster.ManagedClusterSetConditionEmpty,
		Status: metav1.ConditionFalse}}
	expect(t, texts(x.SetSet(again)))
	expect(t, texts(x.SetSet(newSet("s", exclusive("k", "a")))), "MODIFIED c.s")
	expect(t, texts(x.SetSet(newSet("s", selecting(nil)))), "DELETED c.s")
	expect(t, texts(x.SetSet(newSet("s", selecting(&metav1.LabelSelector{})))), "ADDED c.s")
}

func condition(kind string, status metav1.ConditionStatus) func(*cluster.ManagedCluster) {
	return func(c *cluster.ManagedCluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status})
	}
}

// The UID follows from those of the cluster and the set: it is the same after a restart of a replica, and a different one for a new cluster or a
// new set of the name.
func TestMember_UIDFollowsClusterAndSet(t *testing.T) {
	member := func(c *cluster.ManagedCluster, s *cluster.ManagedClusterSet) (m *view.ClusterSetMember) {
		x := New()
		x.SetCluster(c)
		x.SetSet(s)
		x.Members(func(found *view.ClusterSetMember) { m = found })
		return m
	}
	early, late := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	c, s := newCluster("c"), newSet("s", matching())
	c.CreationTimestamp, s.CreationTimestamp = early, late
	m := member(c, s)
	if again := member(c, s); m.UID != again.UID || m.UID == "" {
		t.Errorf("the UID is %q and then %q", m.UID, again.UID)
	}
	if !m.CreationTimestamp.Equal(&late) {
		t.Errorf("created %s, want %s", m.CreationTimestamp, late)
	}
	c.CreationTimestamp, s.CreationTimestamp = late, early
	if m := member(c, s); !m.CreationTimestamp.Equal(&late) {
		t.Errorf("created %s, want %s", m.CreationTimestamp, late)
	}
	c.UID = "other"
	if other := member(c, s); other.UID == m.UID {
		t.Error("another cluster of the same name has the same member")
	}
}

// A change keeps its contents, whatever happens to the cluster afterwards.
func TestChange_IsImmutable(t *testing.T) {
	x := New()
	x.SetSet(newSet("s", matching()))
	added := x.SetCluster(newCluster("c", "k", "a"))
	x.SetCluster(newCluster("c", "k", "b"))
	x.DeleteCluster("c")
	if m := added[0]; m.Type != watch.Added || m.Member.Labels["k"] != "a" {
		t.Errorf("the first change is now %s with the labels %v", m.Type, m.Member.Labels)
	}
}

func TestSetsOf_SortedNames(t *testing.T) {
	x := New()
	for _, name := range []string{"b", "a.b", "a"} {
		x.SetSet(newSet(name, matching("k", "v")))
	}
	x.SetCluster(newCluster("in", "k", "v"))
	x.SetCluster(newCluster("out"))
	x.SetCluster(newCluster("gone", "k", "v"))
	x.DeleteCluster("gone")
	for name, want := range map[string][]string{"in": {"a", "a.b", "b"}, "out": {}, "gone": nil, "never": nil} {
		if got := x.SetsOf(name); !slices.Equal(got, want) {
			t.Errorf("%s is in %q, want %q", name, got, want)
		}
	}
}
