// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// Is tells whether a request is about a resource, whatever its version and subresource.
func Is(a admission.Attributes, resource schema.GroupResource) bool {
	return a.GetResource().GroupResource() == resource
}

// Objects are what a request writes to a resource, by any subresource, and what is stored so far, which is empty for a create.
// They are nil for requests for other resources. Plugins about one kind use it; those about all kinds use Stored.
func Objects[T any](a admission.Attributes, resource schema.GroupResource) (updated, old *T, err error) {
	if !Is(a, resource) {
		return nil, nil, nil
	}
	updated, ok := any(a.GetObject()).(*T)
	if !ok {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("admission got a %T for %s, and expected a %T", a.GetObject(), resource, updated))
	}
	if a.GetOperation() == admission.Create {
		return updated, new(T), nil
	}
	if old, ok = any(a.GetOldObject()).(*T); !ok {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("admission got an old %T for %s, and expected a %T", a.GetOldObject(), resource, old))
	}
	return updated, old, nil
}

// Stored are the metadata of what a request stores, and of what is stored so far, which is empty for a create. It is false for
// requests that store nothing, such as one that creates a token by a subresource, or a check.
func Stored(a admission.Attributes) (updated, old metav1.Object, ok bool) {
	if Is(a, edge.Resource("deploychecks")) {
		return nil, nil, false
	}
	updated, err := meta.Accessor(a.GetObject())
	if err != nil {
		return nil, nil, false
	}
	switch a.GetOperation() {
	case admission.Create:
		return updated, &metav1.ObjectMeta{}, a.GetSubresource() == ""
	case admission.Update:
		old, err = meta.Accessor(a.GetOldObject())
		return updated, old, err == nil
	}
	return nil, nil, false
}

// On is the right to a verb on the object of a request, or on a subresource of it. An object that is created with a
// generated name has none yet: the right has to be one on all names.
func On(a admission.Attributes, verb, subresource string) Rule {
	return Rule{
		Verb: verb, Group: a.GetResource().Group, Resource: a.GetResource().Resource, Subresource: subresource,
		Name: a.GetName(), Namespace: a.GetNamespace(),
	}
}

// Accept are the spellings of the right to accept the cluster of a request: that of the hub, and that of upstream's roles.
func Accept(a admission.Attributes) []Rule {
	hub := On(a, "update", "accept")
	upstream := hub
	upstream.Group = RegisterGroup
	return []Rule{hub, upstream}
}
