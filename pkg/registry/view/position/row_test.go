// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var clusters = Resource{
	GroupResource: schema.GroupResource{Resource: "clusters"},
	New:           func() generic.Object { return &cluster.ManagedCluster{} },
	NewList:       func() runtime.Object { return &cluster.ManagedClusterList{} },
	Fields:        func(generic.Object) fields.Set { return fields.Set{} },
	ByName:        true,
}

// TestRow_KeyIsInRange: each row has a key in the range with which it is listed, names come first, and hidden objects are in none.
func TestRow_KeyIsInRange(t *testing.T) {
	row := func(set string) generic.Object {
		c := &cluster.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		if set != "" {
			SetRow(c, set, []string{"a", set})
		}
		return c
	}
	var keys []string
	for _, c := range []struct {
		object generic.Object
		ranges []string
	}{
		{row(""), []string{clusters.NameKey("c"), clusters.All(), clusters.Rows()}},
		{row("s"), []string{clusters.SetKey("s"), clusters.AllSets(), clusters.Rows()}},
		{row("s.t"), []string{clusters.SetKey("s.t"), clusters.AllSets(), clusters.Rows()}},
		{clusters.NewClock(1), nil},
		{clusters.NewEnd(), nil},
	} {
		key, err := clusters.KeyOf(c.object)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		for _, r := range []string{clusters.NameKey("c"), clusters.All(), clusters.SetKey("s"), clusters.SetKey("s.t"), clusters.AllSets(), clusters.Nothing()} {
			if in, want := strings.HasPrefix(key, r), slices.Contains(c.ranges, r); in != want {
				t.Errorf("%s is in %s: %t, want %t", key, r, in, want)
			}
		}
	}
	slices.Sort(keys)
	if len(slices.Compact(slices.Clone(keys))) != len(keys) || clusters.All() > clusters.AllSets() {
		t.Errorf("the keys are %q", keys)
	}
	c := row("s")
	if sets := RowSets(c); !slices.Equal(sets, []string{"a", "s"}) {
		t.Errorf("the sets are %q", sets)
	}
	Plain(c)
	if c.GetNamespace() != "" || c.GetSelfLink() != "" {
		t.Errorf("a client gets %+v", c)
	}
}
