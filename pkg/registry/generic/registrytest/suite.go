// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	registry "k8s.io/apiserver/pkg/registry/generic"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Namespace is the namespace of the objects of namespaced kinds in a Suite.
const Namespace = "test"

// Suite tests the common behavior of stored kinds.
type Suite[T generic.Object] struct {
	Kind *generic.Kind[T]
	// Decorator creates its storage, if it differs from that of most kinds.
	Decorator registry.StorageDecorator

	// Valid returns an object that can be created. The suite sets Namespace, if its kind is namespaced, and the label env=x.
	Valid func() T
	// Fit makes an object valid after a change of its name. It may be nil.
	Fit func(T)
	// Invalid are changes that make a valid object invalid for a create. A missing name is tested anyway.
	Invalid []func(T)
	// Change is a valid update, and InvalidChanges are invalid ones.
	Change         func(T)
	InvalidChanges []func(T)
	// OtherSpec sets another spec, whether valid or not. The default is Change.
	OtherSpec func(T)
	// Matching are fields that match a valid object, in addition to its name and namespace, and Others are fields that do not.
	Matching, Others []fields.Set
	// Status sets a valid status, and BadStatus makes it invalid. They are nil for a kind without a status. For a computed status, Status sets what
	// it would be for a valid object, for the table.
	Status, BadStatus func(T)
	// Columns are the columns of a table with their priorities, and Cells the cells of a valid object with its status.
	Columns, Cells string
	ShortNames     string
}

// Run tests the kind with a real etcd.
func (s Suite[T]) Run(t *testing.T) {
	etcd, valid := NewEtcd(t), s.Valid
	s.Valid = func() T {
		object := valid()
		if s.Kind.Namespaced {
			object.SetNamespace(Namespace)
		}
		object.SetLabels(labels.Merge(object.GetLabels(), labels.Set{"env": "x"}))
		return object
	}
	if s.OtherSpec == nil {
		s.OtherSpec = s.Change
	}
	for name, test := range map[string]func(*testing.T, *generic.Resource){
		"create":      s.testCreate,
		"update":      s.testUpdate,
		"delete":      func(t *testing.T, r *generic.Resource) { s.tester(t, r).ReturnDeletedObject().TestDelete(s.Valid()) },
		"get":         func(t *testing.T, r *generic.Resource) { s.tester(t, r).TestGet(s.Valid()) },
		"list":        s.testList,
		"generation":  s.testGeneration,
		"status":      s.testStatus,
		"resetFields": s.testResetFields,
		"table":       s.testTable,
		"shortNames":  s.testShortNames,
	} {
		t.Run(name, func(t *testing.T) { test(t, NewStorage(t, etcd, s.Kind, s.Decorator)) })
	}
	// An etcd of its own: the tester watches from version 1 on.
	t.Run("watch", func(t *testing.T) { s.testWatch(t, NewStorage(t, NewEtcd(t), s.Kind, s.Decorator)) })
}

// NewStorage creates the storage of a kind in an etcd, separate from all others there. The decorator may be nil.
func NewStorage(t *testing.T, etcd storagebackend.TransportConfig, kind generic.Definition, decorator registry.StorageDecorator) *generic.Resource {
	t.Helper()
	scheme := Scheme()
	options := Options(etcd, scheme, kind.GroupVersions()[0], kind.GroupResource().Resource)
	options.ResourcePrefix = strings.ToLower(t.Name()) + "/" + options.ResourcePrefix
	if decorator != nil {
		options.Decorator = decorator
	}
	r, err := kind.NewStorage(scheme, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Destroy)
	WaitUntilReady(t, r.Store)
	return r
}

// Context returns the context of a request for a resource, in Namespace if it is namespaced.
func Context(r *generic.Resource, subresources ...string) context.Context {
	if r.NamespaceScoped() {
		return genericregistrytest.NewNamespaceScopeContext(r.Store, Namespace, subresources...)
	}
	return genericregistrytest.NewClusterScopeContext(r.Store, subresources...)
}

// fitted makes the objects of the tester valid, which derives objects with many names from one valid object.
type fitted[T generic.Object] struct {
	rest.RESTCreateStrategy
	fit func(T)
}

func (f fitted[T]) PrepareForCreate(ctx context.Context, object runtime.Object) {
	f.fit(object.(T))
	f.RESTCreateStrategy.PrepareForCreate(ctx, object)
}

func (s Suite[T]) tester(t *testing.T, r *generic.Resource) *genericregistrytest.Tester {
	if s.Fit != nil {
		r.CreateStrategy = fitted[T]{r.CreateStrategy, s.Fit}
	}
	tester := genericregistrytest.New(t, r.Store)
	if !s.Kind.Namespaced {
		tester.ClusterScope()
	}
	return tester
}

// with returns a valid object with a change.
func (s Suite[T]) with(change func(T)) T {
	object := s.Valid()
	change(object)
	return object
}

func (s Suite[T]) testCreate(t *testing.T, r *generic.Resource) {
	invalid := []runtime.Object{s.with(func(o T) { o.SetName("") })}
	for _, spoil := range s.Invalid {
		invalid = append(invalid, s.with(spoil))
	}
	s.tester(t, r).TestCreate(s.Valid(), invalid...)
}

func (s Suite[T]) testUpdate(t *testing.T, r *generic.Resource) {
	update := func(change func(T)) genericregistrytest.UpdateFunc {
		return func(object runtime.Object) runtime.Object {
			change(object.(T))
			return object
		}
	}
	var invalid []genericregistrytest.UpdateFunc
	for _, change := range s.InvalidChanges {
		invalid = append(invalid, update(change))
	}
	s.tester(t, r).TestUpdate(s.Valid(), update(s.Change), invalid...)
}

func (s Suite[T]) testList(t *testing.T, r *generic.Resource) {
	// The tester knows only the usual priorities of columns.
	r.TableConvertor = rest.NewDefaultTableConvertor(s.Kind.Resource)
	s.tester(t, r).TestList(s.Valid())
}

func (s Suite[T]) testWatch(t *testing.T, r *generic.Resource) {
	name := s.Valid().GetName()
	matching, others := append(s.Matching, fields.Set{"metadata.name": name}), append(s.Others, fields.Set{"metadata.name": "another"})
	if s.Kind.Namespaced {
		matching, others = append(matching, fields.Set{"metadata.namespace": Namespace}), append(others, fields.Set{"metadata.namespace": "another"})
	}
	s.tester(t, r).Namer(func(int) string { return name }).
		TestWatch(s.Valid(), []labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}}, matching, others)
}

func (s Suite[T]) testGeneration(t *testing.T, r *generic.Resource) {
	created := Create(t, Context(r), r, s.with(func(o T) { o.SetGeneration(7) }))
	labelled := created.DeepCopyObject().(T)
	labelled.GetLabels()["env"] = "z"
	labelled.SetGeneration(9)
	labelled, err := Update(Context(r), r, labelled)
	if err != nil || created.GetGeneration() != 1 || labelled.GetGeneration() != 1 {
		t.Fatalf("generation %d when created, %d when labelled, %v", created.GetGeneration(), labelled.GetGeneration(), err)
	}
	changed, want := labelled.DeepCopyObject().(T), int64(2)
	s.Change(changed)
	if equality.Semantic.DeepEqual(s.Kind.Spec(changed), s.Kind.Spec(labelled)) {
		want = 1
	}
	changed, err = Update(Context(r), r, changed)
	if err != nil || changed.GetGeneration() != want {
		t.Errorf("generation %d of what was changed, want %d, %v", changed.GetGeneration(), want, err)
	}
}

func (s Suite[T]) testStatus(t *testing.T, r *generic.Resource) {
	status := r.Subresources["status"]
	if (s.Kind.Status == nil || s.Kind.StatusComputed) != (status == nil) || (s.Status == nil) != (s.Kind.Status == nil) {
		t.Fatalf("the kind has the subresource status: %t", status != nil)
	}
	if status == nil {
		s.testComputedStatus(t, r)
		return
	}
	same := func(what string, got, want any) {
		t.Helper()
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	old := Create(t, Context(r), r, s.with(s.Status))
	same("status of what was created with one", s.Kind.Status(old), s.Kind.Status(s.Kind.New()))

	sent := old.DeepCopyObject().(T)
	Spoil(sent)
	s.OtherSpec(sent)
	s.Status(sent)
	updated, err := Update(Context(r, "status"), status, sent)
	if err != nil {
		t.Fatal(err)
	}
	WantSameMeta(t, updated, old)
	same("spec after a write of the status", s.Kind.Spec(updated), s.Kind.Spec(old))
	same("status", s.Kind.Status(updated), s.Kind.Status(sent))

	relabelled := updated.DeepCopyObject().(T)
	reflect.ValueOf(s.Kind.Status(relabelled)).Elem().SetZero()
	relabelled.GetLabels()["env"] = "z"
	relabelled, err = Update(Context(r), r, relabelled)
	if err != nil {
		t.Fatal(err)
	}
	same("status after an update", s.Kind.Status(relabelled), s.Kind.Status(updated))

	bad := relabelled.DeepCopyObject().(T)
	s.BadStatus(bad)
	if _, err := Update(Context(r, "status"), status, bad); !apierrors.IsInvalid(err) {
		t.Errorf("a bad status: got %v", err)
	}
}

// testComputedStatus: a status that the server computes contains nothing that a user sends.
func (s Suite[T]) testComputedStatus(t *testing.T, r *generic.Resource) {
	if s.Kind.Status == nil {
		return
	}
	computed := Create(t, Context(r), r, s.Valid())
	same := func(what string, got T) {
		t.Helper()
		if !equality.Semantic.DeepEqual(s.Kind.Status(got), s.Kind.Status(computed)) {
			t.Errorf("status of what was %s: got %+v, want %+v", what, s.Kind.Status(got), s.Kind.Status(computed))
		}
	}
	sent := computed.DeepCopyObject().(T)
	s.BadStatus(sent)
	sent.GetLabels()["env"] = "z"
	updated, err := Update(Context(r), r, sent)
	if err != nil {
		t.Fatal(err)
	}
	same("updated with another one", updated)
	if _, _, err := r.Delete(Context(r), updated.GetName(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	same("created with another one", Create(t, Context(r), r, s.with(s.BadStatus)))
}

// testResetFields: with server-side apply, a manager gets no fields that the request does not change.
func (s Suite[T]) testResetFields(t *testing.T, r *generic.Resource) {
	spec, status := fieldpath.MakePathOrDie("spec", "a"), fieldpath.MakePathOrDie("status", "a")
	label := fieldpath.MakePathOrDie("metadata", "labels", "a")
	all := fieldpath.NewSet(spec, status, label)
	owned := map[rest.ResetFieldsStrategy]*fieldpath.Set{r: fieldpath.NewSet(spec, label)}
	if sub := r.Subresources["status"]; sub != nil {
		owned[sub] = fieldpath.NewSet(status)
	} else if s.Kind.Status == nil {
		owned[r] = all
	}
	for _, version := range s.Kind.Versions {
		for of, want := range owned {
			got := all
			if reset := of.GetResetFields()[fieldpath.APIVersion(version.String())]; reset != nil {
				got = all.RecursiveDifference(reset)
			}
			if !got.Equals(want) {
				t.Errorf("%T in %s: an applier owns %s, want %s", of, version, got, want)
			}
		}
	}
}

func (s Suite[T]) testTable(t *testing.T, _ *generic.Resource) {
	object := s.Valid()
	if s.Status != nil {
		s.Status(object)
	}
	table, err := s.Kind.Table.ConvertToTable(t.Context(), object, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns, cells []string
	for i, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
		cells = append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
		if column.Description == "" {
			t.Errorf("the column %s has no description", column.Name)
		}
	}
	if got := strings.Join(columns, " "); got != s.Columns {
		t.Errorf("the columns are %q, want %q", got, s.Columns)
	}
	if got := strings.Join(cells, "|"); got != s.Cells {
		t.Errorf("the cells are %q, want %q", got, s.Cells)
	}
}

func (s Suite[T]) testShortNames(t *testing.T, r *generic.Resource) {
	if got := strings.Join(r.ShortNames(), " "); got != s.ShortNames {
		t.Errorf("the short names are %q, want %q", got, s.ShortNames)
	}
}
