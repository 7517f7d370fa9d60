// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Source has all objects, without regard to visibility.
type Source interface {
	GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error
	Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error)
}

// Reader reads the objects of a derived resource as far as a user may see them.
type Reader struct {
	Resource position.Resource
	// Shown is what the right to get a set shows, in the words of a message.
	Shown   string
	Objects Source
	Rules   *Rules
	// Authorizer is asked by Get: rights that do not come from RBAC count there.
	Authorizer authorizer.Authorizer
}

// Get returns one object. A user who may not get the set gets the same answer whether or not the object exists.
func (r *Reader) Get(ctx context.Context, who user.Info, name string, options *metav1.GetOptions) (runtime.Object, error) {
	within, setName, ok := r.Resource.Split(name)
	if !ok {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource, name)
	}
	if err := r.mayGet(ctx, who, name, setName); err != nil {
		return nil, err
	}
	list := r.Resource.NewList()
	err := r.Objects.GetList(ctx, r.Resource.Key(within, setName), storage.ListOptions{
		ResourceVersion: options.ResourceVersion, Predicate: storage.Everything,
	}, list)
	if err != nil {
		return nil, err
	}
	for object := range each(list) {
		return object, nil
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource, name)
}

func (r *Reader) mayGet(ctx context.Context, who user.Info, name, setName string) error {
	decision, _, err := r.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: "get", APIGroup: cluster.GroupName, APIVersion: "v1beta2",
		Resource: "managedclustersets", Name: setName, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return apierrors.NewForbidden(r.Resource.GroupResource, name, &needsSetError{who.GetName(), setName, r.Shown})
}

// needsSetError names the rule that shows a user what is of a set.
type needsSetError struct{ user, set, shown string }

func (e *needsSetError) Error() string {
	return fmt.Sprintf("user %q needs the RBAC rule {apiGroups: [%q], resources: [%q], resourceNames: [%q], verbs: [%q]} to see %s",
		e.user, "cluster.open-cluster-management.io", "managedclustersets", e.set, "get", e.shown)
}
