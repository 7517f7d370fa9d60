// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var members = Resource{
	GroupResource: view.Resource("clustersetmembers"),
	New:           func() generic.Object { return &view.ClusterSetMember{} },
	Split:         SplitName,
	WithinField:   "spec.cluster",
	SetField:      "spec.clusterSet",
	Fields:        func(generic.Object) fields.Set { return fields.Set{} },
}

func TestRange_IsMinimalForSelector(t *testing.T) {
	nothing := members.Nothing()
	for _, c := range []struct {
		selector, version string
		key               string
		recursive         bool
	}{
		{"", "", "/clustersetmembers/set/", true},
		{"spec.clusterSet!=a", "", "/clustersetmembers/set/", true},
		{"spec.cluster=c1", "", "/clustersetmembers/set/", true},
		{"spec.clusterSet=a", "", "/clustersetmembers/set/a/", true},
		{"spec.clusterSet=a,spec.cluster=c1", "", "/clustersetmembers/set/a/c1", false},
		{"spec.clusterSet=a,spec.cluster=c1", "7", "/clustersetmembers/set/a/", true},
		{"metadata.name=c1.a.b", "", "/clustersetmembers/set/a.b/c1", false},
		{"metadata.name=c1.a.b", "0", "/clustersetmembers/set/a.b/", true},
		{"metadata.name=c1", "", nothing, true},
		{"spec.clusterSet=..", "", nothing, true},
		{"spec.clusterSet=a/b", "", nothing, true},
		{"spec.clusterSet=", "", nothing, true},
		{"spec.cluster=..", "", nothing, true},
	} {
		opts := storage.ListOptions{ResourceVersion: c.version, Predicate: storage.SelectionPredicate{
			Label: labels.Everything(), Field: fields.ParseSelectorOrDie(c.selector),
		}}
		if key, recursive := members.Range(opts); key != c.key || recursive != c.recursive {
			t.Errorf("%q at %q: %s, %t, want %s, %t", c.selector, c.version, key, recursive, c.key, c.recursive)
		}
	}
	if Possible(noSet) {
		t.Error("a set may have the name that stands for no set")
	}
}

// TestClock_IsAlwaysSelected: the clock is in no range of members, and matches all selectors, but makes no unselected member match.
func TestClock_IsAlwaysSelected(t *testing.T) {
	clock := members.NewClock(7)
	if key, err := members.KeyOf(clock); err != nil || strings.HasPrefix(key, members.All()) {
		t.Errorf("its key is %q (%v)", key, err)
	}
	p := WithClock(storage.SelectionPredicate{
		Label: labels.SelectorFromSet(labels.Set{"a": "b"}), Field: fields.ParseSelectorOrDie("metadata.name=c1.a"),
		GetAttrs: members.Attributes, IndexFields: []string{"spec.cluster"},
	})
	if name, ok := p.MatchesSingle(); ok {
		t.Errorf("narrowed to %q", name)
	}
	member := &view.ClusterSetMember{}
	for _, c := range []struct {
		name, label string
		want        bool
	}{{"c1.a", "b", true}, {"c1.a", "c", false}, {"c2.a", "b", false}} {
		member.Name, member.Labels = c.name, map[string]string{"a": c.label}
		if ok, err := p.Matches(member); err != nil || ok != c.want {
			t.Errorf("%s with a=%s is selected: %t (%v), want %t", c.name, c.label, ok, err, c.want)
		}
	}
	if ok, err := p.Matches(clock); err != nil || !ok {
		t.Errorf("the clock is selected: %t (%v)", ok, err)
	}
}
