// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersetbinding

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

func newStorage(t *testing.T) *Storage {
	t.Helper()
	_, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	scheme := registrytest.Scheme()
	s, err := NewStorage(scheme, registrytest.Options(etcd.Transport, scheme, v1beta1.SchemeGroupVersion, "managedclustersetbindings"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ManagedClusterSetBinding.Destroy)
	registrytest.WaitUntilReady(t, s.ManagedClusterSetBinding.Store)
	return s
}

func requestContext(s *Storage, namespace string, subresources ...string) context.Context {
	return genericregistrytest.NewNamespaceScopeContext(s.ManagedClusterSetBinding.Store, namespace, subresources...)
}

func binding(namespace, set string) *cluster.ManagedClusterSetBinding {
	return &cluster.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: set, Labels: map[string]string{"env": "x"}, Annotations: map[string]string{"note": "y"},
		},
		Spec: cluster.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// namedLikeItsSet lets the suite, which makes objects of many names from one valid object, make valid bindings.
type namedLikeItsSet struct{ strategy }

func (n namedLikeItsSet) PrepareForCreate(ctx context.Context, object runtime.Object) {
	b := object.(*cluster.ManagedClusterSetBinding)
	b.Spec.ClusterSet = b.Name
	n.strategy.PrepareForCreate(ctx, object)
}

func testerFor(t *testing.T) *genericregistrytest.Tester {
	t.Helper()
	store := newStorage(t).ManagedClusterSetBinding.Store
	store.CreateStrategy = namedLikeItsSet{store.CreateStrategy.(strategy)}
	return genericregistrytest.New(t, store)
}

func TestStorage_CreateInGeneral(t *testing.T) {
	invalid := binding("test", "dev")
	invalid.Labels = map[string]string{"a": strings.Repeat("x", 64)}
	testerFor(t).TestCreate(binding("test", "dev"), invalid)
}

func TestStorage_Create(t *testing.T) {
	s := newStorage(t)
	ctx := requestContext(s, "ns")
	created := registrytest.Create(t, ctx, s.ManagedClusterSetBinding, binding("ns", "dev"))
	if created.Generation != 1 || created.Namespace != "ns" || created.UID == "" {
		t.Errorf("created %+v", created)
	}
	another, unnamed, unspecified := binding("ns", "qa"), binding("ns", ""), binding("ns", "qa")
	another.Spec.ClusterSet = "prod"
	unspecified.Spec.ClusterSet = ""
	for name, invalid := range map[string]*cluster.ManagedClusterSetBinding{
		"of another set": another, "without a name": unnamed, "without a set": unspecified,
	} {
		_, err := s.ManagedClusterSetBinding.Create(ctx, invalid, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := s.ManagedClusterSetBinding.Create(ctx, binding("ns", "dev"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second one: got %v", err)
	}
	_, err = s.ManagedClusterSetBinding.Create(ctx, binding("other", "qa"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("into another namespace than the request's: got %v", err)
	}
	registrytest.Create(t, requestContext(s, "other"), s.ManagedClusterSetBinding, binding("other", "dev"))
}

func TestStorage_Update(t *testing.T) {
	change := func(f func(*cluster.ManagedClusterSetBinding)) genericregistrytest.UpdateFunc {
		return func(object runtime.Object) runtime.Object {
			f(object.(*cluster.ManagedClusterSetBinding))
			return object
		}
	}
	testerFor(t).TestUpdate(binding("test", "dev"),
		change(func(b *cluster.ManagedClusterSetBinding) { b.Labels["env"] = "z" }),
		change(func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = "qa" }),
		change(func(b *cluster.ManagedClusterSetBinding) { b.Spec.ClusterSet = "" }),
	)
}

func TestStorage_Delete(t *testing.T) {
	testerFor(t).ReturnDeletedObject().TestDelete(binding("test", "dev"))
}

func TestStorage_Get(t *testing.T) { testerFor(t).TestGet(binding("test", "dev")) }

func TestStorage_List(t *testing.T) {
	testerFor(t).TestList(binding("test", "dev"))
}

func TestStorage_Watch(t *testing.T) {
	testerFor(t).Namer(func(int) string { return "dev" }).TestWatch(binding("test", "dev"),
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}},
		[]fields.Set{{"metadata.name": "dev"}, {"spec.clusterSet": "dev"}, {"metadata.namespace": "test"}},
		[]fields.Set{{"metadata.name": "qa"}, {"spec.clusterSet": "qa"}, {"metadata.namespace": "other"}},
	)
}

func TestStorage_ListsTheBindingsOfASetInAllNamespaces(t *testing.T) {
	s := newStorage(t)
	for _, b := range []*cluster.ManagedClusterSetBinding{binding("a", "dev"), binding("a", "qa"), binding("b", "dev")} {
		registrytest.Create(t, requestContext(s, b.Namespace), s.ManagedClusterSetBinding, b)
	}
	for namespace, want := range map[string]string{"": "a/dev b/dev", "a": "a/dev", "c": ""} {
		list, err := s.ManagedClusterSetBinding.List(requestContext(s, namespace), &metainternalversion.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.clusterSet", "dev"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range list.(*cluster.ManagedClusterSetBindingList).Items {
			names = append(names, b.Namespace+"/"+b.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("in %q: got %q, want %q", namespace, got, want)
		}
	}
}

func TestStatus_ChangesTheStatusAndNothingElse(t *testing.T) {
	s := newStorage(t)
	old := registrytest.Create(t, requestContext(s, "ns"), s.ManagedClusterSetBinding, binding("ns", "dev"))
	sent := old.DeepCopy()
	registrytest.Spoil(sent)
	sent.Spec.ClusterSet = "qa"
	sent.Status.Conditions = []metav1.Condition{{
		Type: "Bound", Status: "True", Reason: "ClusterSetBound", LastTransitionTime: metav1.Unix(1, 0),
	}}
	updated, err := registrytest.Update(requestContext(s, "ns", "status"), s.Status, sent)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.WantSameMeta(t, updated, old)
	if updated.Spec != old.Spec || !equality.Semantic.DeepEqual(updated.Status, sent.Status) {
		t.Errorf("became %+v", updated)
	}
	// An update of the binding leaves the status as it is.
	relabelled := updated.DeepCopy()
	relabelled.Labels["env"], relabelled.Status = "z", cluster.ManagedClusterSetBindingStatus{}
	relabelled, err = registrytest.Update(requestContext(s, "ns"), s.ManagedClusterSetBinding, relabelled)
	if err != nil || relabelled.Generation != 1 || !equality.Semantic.DeepEqual(relabelled.Status, updated.Status) {
		t.Errorf("after an update: %+v, %v", relabelled, err)
	}
	updated.Status.Conditions[0].Reason = ""
	updated.ResourceVersion = relabelled.ResourceVersion
	if _, err := registrytest.Update(requestContext(s, "ns", "status"), s.Status, updated); !apierrors.IsInvalid(err) {
		t.Errorf("a condition without a reason: got %v", err)
	}
}

func TestResetFields_AreThoseOfTheOtherHalfInBothVersions(t *testing.T) {
	s := newStorage(t)
	spec, status := fieldpath.MakePathOrDie("spec", "clusterSet"), fieldpath.MakePathOrDie("status", "conditions")
	for _, version := range []fieldpath.APIVersion{"cluster.open-cluster-management.io/v1beta1", "cluster.open-cluster-management.io/v1beta2"} {
		for owned, of := range map[string]rest.ResetFieldsStrategy{spec.String(): s.ManagedClusterSetBinding, status.String(): s.Status} {
			got := fieldpath.NewSet(spec, status).RecursiveDifference(of.GetResetFields()[version])
			if got.Size() != 1 || strings.TrimSpace(got.String()) != owned {
				t.Errorf("%s: an applier owns %s, want %s", version, got, owned)
			}
		}
	}
}

func TestTable_Columns(t *testing.T) {
	b := binding("ns", "dev")
	b.Status.Conditions = []metav1.Condition{{Type: "Bound", Status: "False"}}
	table, err := tableConvertor.ConvertToTable(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
	}
	if got := fmt.Sprint(columns, table.Rows[0].Cells); got != "[Name/0 Bound/0 Age/0] [dev False <unknown>]" {
		t.Errorf("got %s", got)
	}
}

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).ManagedClusterSetBinding.ShortNames(),
		" "); got != "mclsetbinding mclsetbindings" {
		t.Errorf("got %q", got)
	}
}
