// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

const regionKey = "info.open-cluster-management.io/region"

func newStorage(t *testing.T) *Storage {
	t.Helper()
	_, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	scheme := registrytest.Scheme()
	options := registrytest.Options(etcd.Transport, scheme, v1beta1.SchemeGroupVersion, "managedclustersets")
	options.Decorator = Decorator(nil)
	s, err := NewStorage(scheme, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ManagedClusterSet.Destroy)
	registrytest.WaitUntilReady(t, s.ManagedClusterSet.Store)
	return s
}

func requestContext(s *Storage, subresources ...string) context.Context {
	return genericregistrytest.NewClusterScopeContext(s.ManagedClusterSet.Store, subresources...)
}

func byName(name string) *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "x"}, Annotations: map[string]string{"note": "y"}},
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

func TestStorage_Create(t *testing.T) {
	unnamed, untyped := byName(""), byName("s1")
	untyped.Spec.ClusterSelector.SelectorType = "Random"
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().TestCreate(
		byName("s1"), unnamed, untyped, byLabel("s1", "region", "apac"), byName(strings.Repeat("x", 64)))
}

func TestStorage_Update(t *testing.T) {
	change := func(f func(*cluster.ManagedClusterSet)) genericregistrytest.UpdateFunc {
		return func(object runtime.Object) runtime.Object {
			f(object.(*cluster.ManagedClusterSet))
			return object
		}
	}
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().TestUpdate(byName("s1"),
		change(func(s *cluster.ManagedClusterSet) { s.Spec = bySelector("").Spec }),
		change(func(s *cluster.ManagedClusterSet) { s.Spec.ClusterSelector.SelectorType = "Random" }),
		change(func(s *cluster.ManagedClusterSet) {
			s.Spec.ClusterSelector.ExclusiveLabel = &cluster.ManagedClusterLabel{}
		}),
	)
}

func TestStorage_Delete(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().ReturnDeletedObject().TestDelete(byName("s1"))
}

func TestStorage_Get(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().TestGet(byName("s1"))
}

func TestStorage_List(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().TestList(byName("s1"))
}

func TestStorage_Watch(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ManagedClusterSet.Store).ClusterScope().TestWatch(byName("s1"),
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}},
		[]fields.Set{{"metadata.name": "s1"}, {"spec.clusterSelector.selectorType": "ExclusiveClusterSetLabel"}},
		[]fields.Set{{"metadata.name": "s2"}, {"spec.clusterSelector.exclusiveLabel.key": regionKey}},
	)
}

func TestStorage_ListsSetsByTheLabelThatTheyClaim(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	for _, set := range []*cluster.ManagedClusterSet{
		byName("named"), byLabel("apac", regionKey, "apac"), byLabel("other", cluster.ClusterSetLabel, "x"), bySelector("any"),
	} {
		registrytest.Create(t, ctx, s.ManagedClusterSet, set)
	}
	for selector, want := range map[string]string{
		"spec.clusterSelector.exclusiveLabel.key=" + cluster.ClusterSetLabel: "named other",
		"spec.clusterSelector.exclusiveLabel.key=" + regionKey:               "apac",
		"spec.clusterSelector.exclusiveLabel.key=":                           "any",
		"spec.clusterSelector.selectorType=ExclusiveClusterSetLabel":         "named",
		"spec.clusterSelector.selectorType=ExclusiveLabel":                   "apac other",
		"spec.clusterSelector.selectorType!=LabelSelector":                   "apac named other",
	} {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.ManagedClusterSet.List(ctx, &metainternalversion.ListOptions{FieldSelector: parsed})
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

func TestStorage_NoTwoSetsClaimTheSameLabel(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	create := func(set *cluster.ManagedClusterSet) error {
		_, err := s.ManagedClusterSet.Create(ctx, set, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		return err
	}
	registrytest.Create(t, ctx, s.ManagedClusterSet, byName("dev"))
	apac := registrytest.Create(t, ctx, s.ManagedClusterSet, byLabel("apac", regionKey, "apac"))
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
	if _, err := registrytest.Update(ctx, s.ManagedClusterSet, apac); err != nil {
		t.Fatal(err)
	}
	if err := create(byLabel("freed-by-change", regionKey, "apac")); err != nil {
		t.Errorf("what a change freed: %v", err)
	}
	if _, _, err := s.ManagedClusterSet.Delete(ctx, "dev", rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := create(byLabel("freed-by-deletion", cluster.ClusterSetLabel, "dev")); err != nil {
		t.Errorf("what a deletion freed: %v", err)
	}
}

func TestStorage_AChangeOfTheSpecIsANewGeneration(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s)
	set := byName("s1")
	set.Generation, set.Status = 7, cluster.ManagedClusterSetStatus{Conditions: []metav1.Condition{{Type: "ClusterSetEmpty"}}}
	created := registrytest.Create(t, ctx, s.ManagedClusterSet, set)
	if created.Generation != 1 || len(created.Status.Conditions) > 0 {
		t.Errorf("created in generation %d with %+v", created.Generation, created.Status)
	}
	created.Labels["env"] = "z"
	created.Status = set.Status
	relabelled, err := registrytest.Update(ctx, s.ManagedClusterSet, created)
	if err != nil || relabelled.Generation != 1 || len(relabelled.Status.Conditions) > 0 || relabelled.Labels["env"] != "z" {
		t.Fatalf("after a change of labels and status: %+v, %v", relabelled, err)
	}
	relabelled.Spec = bySelector("").Spec
	changed, err := registrytest.Update(ctx, s.ManagedClusterSet, relabelled)
	if err != nil || changed.Generation != 2 {
		t.Errorf("after a change of the spec: %+v, %v", changed, err)
	}
}

func TestStatus_ChangesTheStatusAndNothingElse(t *testing.T) {
	s := newStorage(t)
	old := registrytest.Create(t, requestContext(s), s.ManagedClusterSet, byName("s1"))
	sent := old.DeepCopy()
	registrytest.Spoil(sent)
	sent.Spec = bySelector("").Spec
	sent.Status.Conditions = []metav1.Condition{{
		Type: "ClusterSetEmpty", Status: "True", Reason: "NoClusterMatched", LastTransitionTime: metav1.Unix(1, 0),
	}}
	updated, err := registrytest.Update(requestContext(s, "status"), s.Status, sent)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.WantSameMeta(t, updated, old)
	if !equality.Semantic.DeepEqual(updated.Spec, old.Spec) || !equality.Semantic.DeepEqual(updated.Status,
		sent.Status) {
		t.Errorf("became %+v", updated)
	}
	updated.Status.Conditions[0].Reason = ""
	if _, err := registrytest.Update(requestContext(s, "status"), s.Status, updated); !apierrors.IsInvalid(err) {
		t.Errorf("a condition without a reason: got %v", err)
	}
}

func TestResetFields_AreThoseOfTheOtherHalfInBothVersions(t *testing.T) {
	s := newStorage(t)
	spec := fieldpath.MakePathOrDie("spec", "clusterSelector", "selectorType")
	status := fieldpath.MakePathOrDie("status", "conditions")
	label := fieldpath.MakePathOrDie("metadata", "labels", "a")
	for _, version := range []fieldpath.APIVersion{"cluster.open-cluster-management.io/v1beta1", "cluster.open-cluster-management.io/v1beta2"} {
		for name, c := range map[string]struct {
			of          rest.ResetFieldsStrategy
			owned, lost []fieldpath.Path
		}{
			"main":   {s.ManagedClusterSet, []fieldpath.Path{spec, label}, []fieldpath.Path{status}},
			"status": {s.Status, []fieldpath.Path{status}, []fieldpath.Path{spec, label}},
		} {
			reset := c.of.GetResetFields()[version]
			if got := fieldpath.NewSet(append(c.owned,
				c.lost...)...).RecursiveDifference(reset); !got.Equals(fieldpath.NewSet(c.owned...)) {
				t.Errorf("%s in %s: an applier owns %s", name, version, got)
			}
		}
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
		"Name/0", "Empty/0", "Age/0", "Selector Type/1", "Selector/1",
		`["apac" "False" "<unknown>" "ExclusiveLabel" "` + regionKey + `=apac"]`,
		`["dev" "" "<unknown>" "LegacyClusterSetLabel" "` + cluster.ClusterSetLabel + `=dev"]`,
		`["all" "" "<unknown>" "LabelSelector" ""]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).ManagedClusterSet.ShortNames(), " "); got != "mclset mclsets" {
		t.Errorf("got %q", got)
	}
}
