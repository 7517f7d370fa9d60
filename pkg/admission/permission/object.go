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
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// Is reports whether a request is for a resource, in any version and with any subresource.
func Is(a admission.Attributes, resource schema.GroupResource) bool {
	return a.GetResource().GroupResource() == resource
}

// Objects returns the object that a request writes to a resource, by any subresource, and the stored one, which is empty for a create. It returns nil
// for requests for other resources. Plugins for one kind use it; those for all kinds use Stored.
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
	old, ok = any(a.GetOldObject()).(*T)
	if !ok {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("admission got an old %T for %s, and expected a %T", a.GetOldObject(), resource, old))
	}
	return updated, old, nil
}

// Stored returns the metadata of the object that a request stores, and of the stored one, which is empty for a create. ok is false for requests that
// store nothing, such as creating a token by a subresource, or a check.
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

// On returns the permission for a verb on the object of a request, or on a subresource of it. An object with a generated name has no name yet when it
// is created, and needs a permission on all names.
func On(a admission.Attributes, verb, subresource string) rbac.Permission {
	return rbac.Permission{
		Verb: verb, Group: a.GetResource().Group, Resource: a.GetResource().Resource, Subresource: subresource,
		Name: a.GetName(), Namespace: a.GetNamespace(),
	}
}

// Accept returns the spellings of the permission to accept the cluster of a request: the hub's, and that of upstream's roles.
func Accept(a admission.Attributes) []rbac.Permission {
	hub := On(a, "update", "accept")
	upstream := hub
	upstream.Group = RegisterGroup
	return []rbac.Permission{hub, upstream}
}
