// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target is a cluster as a provider changes it: what gives rights in it is applied and taken away again, each with its owner.
package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
)

// soon is how long a cluster may take to answer that others wait for.
const soon = 5 * time.Second

// mapper spares asking each cluster for what every cluster has.
var mapper = func() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("Role"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), meta.RESTScopeRoot)
	return mapper
}()

// Target is a cluster as the provider changes it for one AccessRequest. It touches only what has the labels.
type Target struct {
	client.Client
	Labels client.MatchingLabels
	// Origin are annotations that say for which of all requests that ever have these labels something was made.
	Origin map[string]string
}

// Soon is a cluster that has to answer soon, such as one that is to be removed, or looked through.
func Soon(config *rest.Config, labels client.MatchingLabels) (*Target, error) {
	config = rest.CopyConfig(config)
	config.Timeout = soon
	return New(config, labels, nil)
}

// New is the cluster that is reached in a way.
func New(config *rest.Config, labels client.MatchingLabels, origin map[string]string) (*Target, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: rights.Scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Target{Client: c, Labels: labels, Origin: origin}, nil
}

// Make brings objects to what they should be, in their order; those that are there already are given by their keys. It ends
// with the first that it cannot: a binding that comes after a role, or a ServiceAccount, of somebody else would give the
// rights of that role, or give them to that account.
func (t *Target) Make(ctx context.Context, wanted *rights.Rights, have map[string]client.Object) error {
	for _, want := range wanted.Objects {
		want.SetLabels(maps.Clone(t.Labels))
		want.SetAnnotations(maps.Clone(t.Origin))
		err := t.applyOne(ctx, want, have[rights.Key(want)])
		if apierrors.IsNotFound(err) && slices.Contains(wanted.Namespaces, want.GetNamespace()) {
			if err := t.ensureNamespace(ctx, want.GetNamespace()); err != nil {
				return fmt.Errorf("making namespace %s: %w", want.GetNamespace(), err)
			}
			err = t.applyOne(ctx, want, nil)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", rights.Key(want), err)
		}
	}
	return nil
}

// ensureNamespace creates a namespace that is not there. It has no labels, and is never deleted: others may use it, too.
func (t *Target) ensureNamespace(ctx context.Context, name string) error {
	err := t.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// applyOne brings one object to what it should be: have is what is there, or nil if nothing of ours is.
func (t *Target) applyOne(ctx context.Context, want, have client.Object) error {
	if have == nil {
		err := t.Create(ctx, want.DeepCopyObject().(client.Object))
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		have = want.DeepCopyObject().(client.Object)
		if err := t.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return err
		}
	}
	if !t.Manages(have) {
		return hub.Because(hub.ReasonNotManaged, errors.New(
			"it exists but does not contain the expected management labels, so it is somebody else's and is left alone"))

	}
	if rights.RoleRefOf(have) != rights.RoleRefOf(want) {
		return t.recreate(ctx, have, want, "it refers to another role now")
	}
	if t.formers(have) {
		return t.recreate(ctx, have, want, "it was made for a former request of this name")
	}
	before := have.DeepCopyObject().(client.Object)
	copyContent(want, have)
	have.SetAnnotations(labels.Merge(have.GetAnnotations(), t.Origin))
	if equality.Semantic.DeepEqual(before, have) {
		return nil
	}
	return t.Update(ctx, have)
}

// Manages is whether something has the labels.
func (t *Target) Manages(object client.Object) bool {
	for label, value := range t.Labels {
		if object.GetLabels()[label] != value {
			return false
		}
	}
	return true
}

// formers is whether something was made for a former request of the same name. Tokens of its ServiceAccount may be about.
func (t *Target) formers(have client.Object) bool {
	for annotation, value := range t.Origin {
		if was, ok := have.GetAnnotations()[annotation]; ok && was != value {
			return true
		}
	}
	return false
}

// recreate replaces what cannot be changed: the role of a binding, and the tokens of a ServiceAccount.
func (t *Target) recreate(ctx context.Context, have, want client.Object, why string) error {
	uid := have.GetUID()
	if err := t.Delete(ctx, have, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return err
	}
	err := t.Create(ctx, want.DeepCopyObject().(client.Object))
	if apierrors.IsAlreadyExists(err) {
		return hub.Because(hub.ReasonRecreating, errors.New(why+", and waits until the old one is deleted"))
	}
	return err
}

// Cleanup deletes what has the labels and is not to be kept. It returns the rest by their keys.
func (t *Target) Cleanup(ctx context.Context, keep []client.Object) (map[string]client.Object, error) {
	have := map[string]client.Object{}
	kept := sets.New[string]()
	for _, object := range keep {
		kept.Insert(rights.Key(object))
	}
	for _, kind := range rights.Kinds {
		list, err := rights.Scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err != nil {
			return nil, err
		}
		if err := t.List(ctx, list.(client.ObjectList), t.Labels); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			object := item.(client.Object)
			if kept.Has(rights.Key(object)) {
				have[rights.Key(object)] = object
				continue
			}
			uid := object.GetUID()
			if err := t.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("%s: %w", rights.Key(object), err)
			}
		}
	}
	return have, nil
}

// copyContent copies what an object is about, and leaves its metadata alone.
func copyContent(from, to client.Object) {
	switch from := from.(type) {
	case *rbacv1.Role:
		to.(*rbacv1.Role).Rules = from.Rules
	case *rbacv1.ClusterRole:
		to.(*rbacv1.ClusterRole).Rules = from.Rules
		to.(*rbacv1.ClusterRole).AggregationRule = nil
	case *rbacv1.RoleBinding:
		to.(*rbacv1.RoleBinding).Subjects = from.Subjects
	case *rbacv1.ClusterRoleBinding:
		to.(*rbacv1.ClusterRoleBinding).Subjects = from.Subjects
	}
}
