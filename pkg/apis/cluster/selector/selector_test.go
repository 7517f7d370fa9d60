// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

const (
	setKey    = "cluster.open-cluster-management.io/clusterset"
	regionKey = "info.open-cluster-management.io/region"
)

// Clusters by their labels.
var fleet = map[string]labels.Set{
	"bare": nil,
	"dev":  {setKey: "dev"},
	"apac": {setKey: "qa", regionKey: "apac"},
	"emea": {regionKey: "emea", "env": "x"},
}

// cases are sets named "dev", in v1beta1, and what is to be known of them.
var cases = map[string]struct {
	selector           v1beta1.ManagedClusterSelector
	selects            []string
	key, value         string // what the set claims, if anything
	describes, written string
}{
	"no type": {
		selects: []string{"dev"}, key: setKey, value: "dev", describes: "LegacyClusterSetLabel", written: setKey + "=dev",
	},
	"the legacy type": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "LegacyClusterSetLabel"},
		selects:  []string{"dev"}, key: setKey, value: "dev", describes: "LegacyClusterSetLabel", written: setKey + "=dev",
	},
	"the legacy type as v1beta2 names it": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "ExclusiveClusterSetLabel"},
		selects:  []string{"dev"}, key: setKey, value: "dev", describes: "LegacyClusterSetLabel", written: setKey + "=dev",
	},
	"an exclusive label": {
		selector: v1beta1.ManagedClusterSelector{
			SelectorType: "ExclusiveLabel", ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: regionKey, Value: "apac"},
		},
		selects: []string{"apac"}, key: regionKey, value: "apac", describes: "ExclusiveLabel", written: regionKey + "=apac",
	},
	"the clusterset label of another name": {
		selector: v1beta1.ManagedClusterSelector{
			SelectorType: "ExclusiveLabel", ExclusiveLabel: &v1beta1.ManagedClusterLabel{Key: setKey, Value: "qa"},
		},
		selects: []string{"apac"}, key: setKey, value: "qa", describes: "ExclusiveLabel", written: setKey + "=qa",
	},
	"an exclusive type without its label": {
		selector:  v1beta1.ManagedClusterSelector{SelectorType: "ExclusiveLabel"},
		describes: "ExclusiveLabel", written: "<none>",
	},
	"no label selector": {
		selector:  v1beta1.ManagedClusterSelector{SelectorType: "LabelSelector"},
		describes: "LabelSelector", written: "<none>",
	},
	"an empty label selector": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{}},
		selects:  []string{"bare", "dev", "apac", "emea"}, describes: "LabelSelector", written: "",
	},
	"a label selector": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"env": "x"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: regionKey, Operator: "In", Values: []string{"emea", "apac"}}},
		}},
		selects: []string{"emea"}, describes: "LabelSelector", written: "env=x," + regionKey + " in (apac,emea)",
	},
	"a label selector on the clusterset label": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{setKey: "dev"},
		}},
		selects: []string{"dev"}, describes: "LabelSelector", written: setKey + "=dev",
	},
	"a broken label selector": {
		selector: v1beta1.ManagedClusterSelector{SelectorType: "LabelSelector", LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}},
		}},
		describes: "LabelSelector", written: "<none>",
	},
	"an unknown type": {
		selector:  v1beta1.ManagedClusterSelector{SelectorType: "Random"},
		describes: "Random", written: "<none>",
	},
}

// broken are the cases for which asking is an error.
var broken = map[string]bool{"a broken label selector": true, "an unknown type": true, "an exclusive type without its label": true}

func wantSelected(t *testing.T, how string, s labels.Selector, err error, fails bool, want []string) {
	t.Helper()
	if fails {
		if err == nil {
			t.Errorf("%s: selects %v, want an error", how, s)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", how, err)
		return
	}
	selected := map[string]bool{}
	for _, name := range want {
		selected[name] = true
	}
	for name, set := range fleet {
		if s.Matches(set) != selected[name] {
			t.Errorf("%s: selects %s: %t, want %t", how, name, s.Matches(set), selected[name])
		}
	}
}

func TestEveryVersionSelectsTheSame(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old := &v1beta1.ManagedClusterSet{
				ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: v1beta1.ManagedClusterSetSpec{ClusterSelector: c.selector},
			}
			s, err := ForV1beta1(old)
			wantSelected(t, "v1beta1", s, err, broken[name], c.selects)

			internal := &cluster.ManagedClusterSet{}
			if err := v1beta1.Convert_v1beta1_ManagedClusterSet_To_cluster_ManagedClusterSet(old, internal,
				nil); err != nil {
				t.Fatal(err)
			}
			s, err = For(internal)
			wantSelected(t, "internal", s, err, broken[name], c.selects)

			shown := &v1beta2.ManagedClusterSet{}
			if err := v1beta2.Convert_cluster_ManagedClusterSet_To_v1beta2_ManagedClusterSet(internal, shown,
				nil); err != nil {
				t.Fatal(err)
			}
			s, err = ForV1beta2(shown)
			wantSelected(t, "v1beta2", s, err, broken[name], c.selects)

			key, value, ok := ExclusivePair(internal)
			if key != c.key || value != c.value || ok != (c.key != "") {
				t.Errorf("claims %q=%q, %t, want %q=%q", key, value, ok, c.key, c.value)
			}
			if typ, text := Describe(internal); typ != c.describes || text != c.written {
				t.Errorf("described as %q %q, want %q %q", typ, text, c.describes, c.written)
			}
		})
	}
}

func TestFor_UnconvertedSetIsSelectedByName(t *testing.T) {
	set := &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}
	s, err := For(set)
	wantSelected(t, "internal", s, err, false, []string{"dev"})
	if typ, text := Describe(set); typ != "LegacyClusterSetLabel" || text != setKey+"=dev" {
		t.Errorf("described as %q %q", typ, text)
	}
}
