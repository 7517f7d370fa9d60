// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply applies objects to a cluster, each with its owner, and deletes them. It never changes objects of other owners, and does not write an
// object that is as desired.
package apply

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// tries is the maximum number of attempts for an object that other clients change at the same time.
const tries = 5

// ID identifies an object of a cluster.
type ID struct {
	schema.GroupKind
	types.NamespacedName
}

// IDOf returns the ID of an object.
func IDOf(object client.Object) ID {
	kind, err := apiutil.GVKForObject(object, scheme.Scheme)
	if err != nil {
		kind.Kind = fmt.Sprintf("%T", object)
	}
	return ID{kind.GroupKind(), client.ObjectKeyFromObject(object)}
}

// String formats an ID for users.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}

// Applier changes a cluster for one owner.
type Applier struct {
	Client client.Client
	Owner  Owner
	// Strategy creates and updates objects.
	Strategy Strategy
	// Adopt also updates objects of other owners. It is for names that have only one purpose.
	Adopt bool
	// Propagation is the propagation policy of deletions. The default is background.
	Propagation metav1.DeletionPropagation
}

// Get returns the current object with the ID of the given one, or nil.
func (a *Applier) Get(ctx context.Context, object client.Object) (client.Object, error) {
	// Into an empty object: decoding leaves fields that a response does not have, such as the labels of the given object.
	have := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	have.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	if err := a.Client.Get(ctx, client.ObjectKeyFromObject(object), have); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return have, nil
}

// Observe gets an object to be applied, and returns an error if it has another owner. A caller that looks at all objects first does not start what it
// cannot complete.
func (a *Applier) Observe(ctx context.Context, object client.Object) (client.Object, error) {
	have, err := a.Get(ctx, object)
	if err == nil && have != nil {
		err = a.mayChange(have)
	}
	return have, err
}

// mayChange returns an error for objects of other owners. It accepts all namespaces: they are used as they are.
func (a *Applier) mayChange(have client.Object) error {
	if a.Owner.Owns(have) || a.Adopt || isNamespace(have) {
		return nil
	}
	return &NotOurs{Object: IDOf(have), Owner: a.Owner}
}

func isNamespace(object client.Object) bool {
	return IDOf(object).GroupKind == schema.GroupKind{Kind: "Namespace"}
}

// ApplyAll applies objects in order; have are the known existing ones. It stops at the first object that it cannot apply: if that is a role or a
// ServiceAccount of another owner, a binding after it would grant the rights of that role, or grant rights to that account. Of the given namespaces,
// it creates those that an object needs. They have no labels, and are never deleted: others may use them, too.
func (a *Applier) ApplyAll(ctx context.Context, objects []client.Object, have map[ID]client.Object, namespaces ...string) error {
	for _, want := range objects {
		err := a.Apply(ctx, want, have[IDOf(want)])
		if namespace := want.GetNamespace(); apierrors.IsNotFound(err) && slices.Contains(namespaces, namespace) {
			err = a.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("creating namespace %s: %w", namespace, err)
			}
			err = a.Apply(ctx, want, nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", IDOf(want), err)
		}
	}
	return nil
}

// Apply applies one object: have is the existing object, or nil if none is known. If that has changed since, Apply gets the current one, and decides
// again.
func (a *Applier) Apply(ctx context.Context, want, have client.Object) error {
	want = copyOf(want)
	a.Owner.mark(want)
	for try := 1; ; try++ {
		err := a.write(ctx, copyOf(want), have)
		stale := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || have != nil && apierrors.IsNotFound(err)
		if !stale || try == tries {
			return err
		}
		have, err = a.Get(ctx, want)
		if err != nil {
			return err
		}
	}
}

// write applies an object, if have is current.
func (a *Applier) write(ctx context.Context, want, have client.Object) error {
	if have == nil {
		return a.Strategy(ctx, a.Client, want, nil)
	}
	if err := a.mayChange(have); err != nil {
		return err
	}
	switch ours := a.Owner.Owns(have); {
	case !ours && isNamespace(have):
		return nil
	case ours && RoleRefOf(have) != RoleRefOf(want):
		return a.recreate(ctx, want, have, "it now refers to another role")
	case ours && a.Owner.formers(have):
		// Tokens of its ServiceAccount may still be in use.
		return a.recreate(ctx, want, have, "it was created for a former owner of this name")
	}
	return a.Strategy(ctx, a.Client, want, copyOf(have))
}

// recreate replaces an object that cannot be updated, such as a binding with another role or a ServiceAccount with tokens.
func (a *Applier) recreate(ctx context.Context, want, have client.Object, why string) error {
	if err := a.delete(ctx, have); err != nil {
		return err
	}
	err := a.Strategy(ctx, a.Client, want, nil)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return &Recreating{Object: IDOf(want), Why: why}
	}
	return err
}

// delete deletes an object, if it is still as it was read: it may have been recreated, or have another owner.
func (a *Applier) delete(ctx context.Context, have client.Object) error {
	uid, version := have.GetUID(), have.GetResourceVersion()
	return client.IgnoreNotFound(a.Client.Delete(ctx, have, client.Preconditions{UID: &uid, ResourceVersion: &version},
		client.PropagationPolicy(cmp.Or(a.Propagation, metav1.DeletePropagationBackground))))
}

// Delete deletes have, which may be nil, if it is ours, and reports whether it was.
func (a *Applier) Delete(ctx context.Context, have client.Object) (ours bool, err error) {
	for try := 1; have != nil && a.Owner.Owns(have); try++ {
		if err = a.delete(ctx, have); !apierrors.IsConflict(err) || try == tries {
			return err == nil, err
		}
		have, err = a.Get(ctx, have)
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Prune deletes the owner's objects of some kinds, in order, that are not desired: all of them if nothing is. It returns the rest.
func (a *Applier) Prune(ctx context.Context, kinds []schema.GroupVersionKind, wanted []client.Object) (map[ID]client.Object, error) {
	have, keep := map[ID]client.Object{}, sets.New[ID]()
	for _, object := range wanted {
		keep.Insert(IDOf(object))
	}
	for _, kind := range kinds {
		list, err := a.Client.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, err
		}
		if err := a.Client.List(ctx, list.(client.ObjectList), client.MatchingLabels(a.Owner.Labels)); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			object := item.(client.Object)
			if id := IDOf(object); !keep.Has(id) {
				_, err = a.Delete(ctx, object)
			} else if a.Owner.Owns(object) {
				have[id] = object
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", IDOf(object), err)
			}
		}
	}
	return have, nil
}

// RoleRefOf returns the role of a binding, or an empty reference for other objects.
func RoleRefOf(object client.Object) rbacv1.RoleRef {
	switch o := object.(type) {
	case *rbacv1.RoleBinding:
		return o.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return o.RoleRef
	case *unstructured.Unstructured:
		ref, _, _ := unstructured.NestedStringMap(o.Object, "roleRef")
		return rbacv1.RoleRef{APIGroup: ref["apiGroup"], Kind: ref["kind"], Name: ref["name"]}
	}
	return rbacv1.RoleRef{}
}

func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }
