// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

func newCluster(name string, labels ...string) *cluster.ManagedCluster {
	c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		c.Labels[label] = "x"
	}
	return c
}

func newSet(name, label string) *cluster.ManagedClusterSet {
	s := &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.ClusterSelector = cluster.ManagedClusterSelector{SelectorType: cluster.LabelSelector,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "x"}}}
	return s
}

func written(object generic.Object) string {
	if object.GetName() == position.EndName {
		return "end"
	}
	if set, ok := position.RowSet(object); ok {
		return fmt.Sprintf("%s/%s(%s)", set, object.GetName(), strings.Join(position.RowSets(object), ","))
	}
	return object.GetName()
}

func writtenAll(changes []derived.Change) string {
	var texts []string
	for _, change := range changes {
		texts = append(texts, string(change.Type[0])+" "+written(change.Object))
	}
	return strings.Join(texts, "; ")
}

// TestIndex_EventsOfAllRows: a change of a cluster is an event of each of its rows, with that of the name last and only if the cluster itself has
// changed.
func TestIndex_EventsOfAllRows(t *testing.T) {
	x := newIndex(nil)
	for _, step := range []struct {
		name string
		do   func() []derived.Change
		want string
	}{
		{"a set", func() []derived.Change { return x.Set(newSet("s", "k")) }, ""},
		{"a cluster in none", func() []derived.Change { return x.Set(newCluster("c1")) }, "A c1; M end"},
		{"it joins", func() []derived.Change { return x.Set(newCluster("c1", "k")) }, "A s/c1(s); M c1; M end"},
		{"it changes", func() []derived.Change { return x.Set(newCluster("c1", "k", "l")) }, "M s/c1(s); M c1; M end"},
		{"a set comes", func() []derived.Change { return x.Set(newSet("a", "l")) }, "A a/c1(a,s); M s/c1(a,s); M end"},
		{"a set that selects nothing", func() []derived.Change { return x.Set(newSet("z", "z")) }, ""},
		{"another cluster", func() []derived.Change { return x.Set(newCluster("c0", "l", "z")) }, "A a/c0(a,z); A z/c0(a,z); A c0; M end"},
		{"a set selects others", func() []derived.Change { return x.Set(newSet("a", "k")) },
			"D a/c0(z); M z/c0(z); M end"},
		{"it moves", func() []derived.Change { return x.Set(newCluster("c1", "z")) }, "D a/c1(z); D s/c1(z); A z/c1(z); M c1; M end"},
		{"a set goes", func() []derived.Change { return x.Delete(newSet("z", "z")) }, "D z/c0(); D z/c1(); M end"},
		{"a set that is not there", func() []derived.Change { return x.Delete(newSet("z", "z")) }, ""},
		{"back", func() []derived.Change { return x.Set(newCluster("c1", "k")) }, "A a/c1(a,s); A s/c1(a,s); M c1; M end"},
		{"a cluster goes", func() []derived.Change { return x.Delete(newCluster("c1")) }, "D a/c1(); D s/c1(); D c1; M end"},
		{"one that is not there", func() []derived.Change { return x.Delete(newCluster("c1")) }, ""},
	} {
		if got := writtenAll(step.do()); got != step.want {
			t.Errorf("%s: %s\nwant %s", step.name, got, step.want)
		}
	}
	x.Set(newCluster("c2", "k"))
	var rows []string
	x.Each(func(object generic.Object, clusterName, setName string) {
		rows = append(rows, fmt.Sprint(written(object), " of ", clusterName, "/", setName))
	})
	slices.Sort(rows)
	if want := []string{"a/c2(a,s) of c2/a", "c0 of c0/", "c2 of c2/", "s/c2(a,s) of c2/s"}; !slices.Equal(rows, want) {
		t.Errorf("all rows are %q, want %q", rows, want)
	}
}
