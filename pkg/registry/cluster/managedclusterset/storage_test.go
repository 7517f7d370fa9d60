// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

const regionKey = "info.open-cluster-management.io/region"

func byName(name string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"note": "y"}},
		Spec:       cluster.ManagedClusterSetSpec{ClusterSelector: cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveClusterSetLabel}},
	}
}

func byLabel(name, key, value string) *cluster.ManagedClusterSet {
	set := byName(name)
	set.Spec.ClusterSelector = cluster.ManagedClusterSelector{
		SelectorType: cluster.ExclusiveLabel, ExclusiveLabel: &cluster.ManagedClusterLabel{Key: key, Value: value},
	}
	return set
}

func bySelector(name string) *cluster.ManagedClusterSet {
	set := byName(name)
	set.Spec.ClusterSelector = cluster.ManagedClusterSelector{
		SelectorType: cluster.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{regionKey: "apac"}},
	}
	return set
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.ManagedClusterSet]{
		Kind:      Kind,
		Decorator: Decorator(nil),
		Valid:     func() *cluster.ManagedClusterSet { return byName("s1") },
		Invalid: []func(*cluster.ManagedClusterSet){
			func(s *cluster.ManagedClusterSet) { s.Spec.ClusterSelector.SelectorType = "Random" },
			func(s *cluster.ManagedClusterSet) { s.Spec = byLabel("", "region", "apac").Spec },
			func(s *cluster.ManagedClusterSet) { s.Name = strings.Repeat("x", 64) },
		},
		Change: func(s *cluster.ManagedClusterSet) { s.Spec = bySelector("").Spec },
		InvalidChanges: []func(*cluster.ManagedClusterSet){
			func(s *cluster.ManagedClusterSet) { s.Spec.ClusterSelector.SelectorType = "Random" },
			func(s *cluster.ManagedClusterSet) {
				s.Spec.ClusterSelector.ExclusiveLabel = &cluster.ManagedClusterLabel{}
			},
		},
		Matching: []fields.Set{{"spec.clusterSelector.selectorType": "ExclusiveClusterSetLabel"}},
		Others:   []fields.Set{{"spec.clusterSelector.exclusiveLabel.key": regionKey}},
		Status: func(s *cluster.ManagedClusterSet) {
			s.Status.Conditions = []metav1.Condition{{
				Type: "ClusterSetEmpty", Status: "True", Reason: "NoClusterMatched", LastTransitionTime: metav1.Unix(1, 0),
			}}
		},
		BadStatus:  func(s *cluster.ManagedClusterSet) { s.Status.Conditions[0].Reason = "" },
		Columns:    "Name/0 Empty/0 Selector/0 Age/0 Selector Type/1",
		Cells:      "s1|True|" + cluster.ClusterSetLabel + "=s1|<unknown>|LegacyClusterSetLabel",
		ShortNames: "mclset mclsets",
	}.Run(t)
}

func newStorage(t *testing.T) *generic.Resource {
	t.Helper()
	return registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, Decorator(nil))
}

func TestStorage_ListsSetsByLabel(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	for _, set := range []*cluster.ManagedClusterSet{
		byName("named"), byLabel("apac", regionKey, "apac"), byLabel("other", cluster.ClusterSetLabel, "x"), bySelector("any"),
	} {
		registrytest.Create(t, ctx, s, set)
	}
	for selector, want := range map[string]string{
		"spec.clusterSelector.exclusiveLabel.key=" + cluster.ClusterSetLabel:                                       "named other",
		"spec.clusterSelector.exclusiveLabel.key=" + regionKey:                                                     "apac",
		"spec.clusterSelector.exclusiveLabel.key=":                                                                 "any",
		"spec.clusterSelector.exclusiveLabel.value=named":                                                          "named",
		"spec.clusterSelector.exclusiveLabel.key=" + regionKey + ",spec.clusterSelector.exclusiveLabel.value=apac": "apac",
		"spec.clusterSelector.exclusiveLabel.key=" + regionKey + ",spec.clusterSelector.exclusiveLabel.value=x":    "",
		"spec.clusterSelector.selectorType=ExclusiveClusterSetLabel":                                               "named",
		"spec.clusterSelector.selectorType=ExclusiveLabel":                                                         "apac other",
		"spec.clusterSelector.selectorType!=LabelSelector":                                                         "apac named other",
	} {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.List(ctx, &metainternalversion.ListOptions{FieldSelector: parsed})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, set := range list.(*cluster.ManagedClusterSetList).Items {
			names = append(names, set.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
}

func TestStorage_LabelIsExclusive(t *testing.T) {
	s := newStorage(t)
	ctx := registrytest.Context(s)
	create := func(set *cluster.ManagedClusterSet) error {
		_, err := s.Create(ctx, set, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	registrytest.Create(t, ctx, s, byName("dev"))
	apac := registrytest.Create(t, ctx, s, byLabel("apac", regionKey, "apac"))
	for holder, set := range map[string]*cluster.ManagedClusterSet{
		"dev": byLabel("x", cluster.ClusterSetLabel, "dev"), "apac": byLabel("x", regionKey, "apac"),
	} {
		err := create(set)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), fmt.Sprintf("already claimed by the ManagedClusterSet %q",
			holder)) {
			t.Errorf("a claim of %s's label: got %v, want a 409 that names it", holder, err)
		}
	}
	if err := create(bySelector("overlaps")); err != nil {
		t.Errorf("a selector that overlaps: %v", err)
	}
	apac.Spec.ClusterSelector.ExclusiveLabel.Value = "asia"
	if _, err := registrytest.Update(ctx, s, apac); err != nil {
		t.Fatal(err)
	}
	if err := create(byLabel("freed-by-change", regionKey, "apac")); err != nil {
		t.Errorf("what a change freed: %v", err)
	}
	if _, _, err := s.Delete(ctx, "dev", rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := create(byLabel("freed-by-deletion", cluster.ClusterSetLabel, "dev")); err != nil {
		t.Errorf("what a deletion freed: %v", err)
	}
}

func TestTable_Columns(t *testing.T) {
	set := byLabel("apac", regionKey, "apac")
	set.Status.Conditions = []metav1.Condition{{Type: "ClusterSetEmpty", Status: "False"}}
	everything := bySelector("all")
	everything.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{}
	list := &cluster.ManagedClusterSetList{Items: []cluster.ManagedClusterSet{*set, *byName("dev"), *everything}}
	table, err := tableConvertor.ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, column := range table.ColumnDefinitions {
		got = append(got, fmt.Sprintf("%s/%d", column.Name, column.Priority))
	}
	for _, row := range table.Rows {
		got = append(got, fmt.Sprintf("%q", row.Cells))
	}
	want := []string{
		"Name/0", "Empty/0", "Selector/0", "Age/0", "Selector Type/1",
		`["apac" "False" "` + regionKey + `=apac" "<unknown>" "ExclusiveLabel"]`,
		`["dev" "" "` + cluster.ClusterSetLabel + `=dev" "<unknown>" "LegacyClusterSetLabel"]`,
		`["all" "" "<every cluster>" "<unknown>" "LabelSelector"]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
