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

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Source has all objects, independent of their visibility.
type Source interface {
	// Wait starts to compute the objects, if that has not started, and waits until it is complete.
	Wait(ctx context.Context) error
	GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error
	Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error)
}

// Reader reads the objects of a derived resource as far as a user may see them.
type Reader struct {
	Resource position.Resource
	// Shown describes what the right to get a set shows, for messages.
	Shown   string
	Objects Source
	Rules   *Rules
	// Authorizer is called by Get: rights that do not come from RBAC count there.
	Authorizer authorizer.Authorizer
}

// rules returns the rules that decide about the resource.
func (r *Reader) rules() *history {
	if r.Resource.ByName {
		return r.Rules.clusters
	}
	return r.Rules.history
}

// now returns what a user may see, and since which version. No other resource delivers the rules of clusters, so they are known once its own objects
// are computed.
func (r *Reader) now(ctx context.Context, who user.Info) (visibleObjects, uint64, error) {
	if r.Resource.ByName {
		if err := r.Objects.Wait(ctx); err != nil {
			return visibleObjects{}, 0, err
		}
	}
	return r.rules().now(ctx, who)
}

// Get returns one object. A user who may not see it gets the same error whether or not the object exists.
func (r *Reader) Get(ctx context.Context, who user.Info, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if r.Resource.ByName {
		return r.getByName(ctx, who, name, options)
	}
	within, setName, ok := r.Resource.Split(name)
	if !ok {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource, name)
	}
	right := setRight(setName)
	may, err := r.may(ctx, who, right)
	switch {
	case err != nil:
		return nil, err
	case !may:
		permission.Lacked(ctx, auditSuffix, rule(right))
		return nil, apierrors.NewForbidden(r.Resource.GroupResource, name, &needsSetError{who.GetName(), setName, r.Shown})
	}
	return r.first(ctx, r.Resource.Key(within, setName), storage.ListOptions{
		ResourceVersion: options.ResourceVersion, Predicate: storage.Everything,
	}, name)
}

// first returns the first object that is read, or a NotFound error for the name.
func (r *Reader) first(ctx context.Context, key string, opts storage.ListOptions, name string) (runtime.Object, error) {
	list := r.Resource.NewList()
	if err := r.Objects.GetList(ctx, key, opts, list); err != nil {
		return nil, err
	}
	for object := range each(list) {
		return object, nil
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource, name)
}

// auditSuffix is the suffix of the audit annotation with the right by which one object was read.
const auditSuffix = "clusterview-get"

func rule(right authorizer.AttributesRecord) rbac.Permission {
	return rbac.Permission{Verb: right.Verb, Group: right.APIGroup, Resource: right.Resource, Subresource: right.Subresource, Name: right.Name}
}

// may calls the authorizer for a right. The first right that a user holds decides.
func (r *Reader) may(ctx context.Context, who user.Info, right authorizer.AttributesRecord) (bool, error) {
	right.User, right.ResourceRequest = who, true
	decision, _, err := r.Authorizer.Authorize(ctx, right)
	if decision == authorizer.DecisionAllow {
		permission.Used(ctx, auditSuffix, rule(right))
		return true, nil
	}
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return false, nil
}

func setRight(name string) authorizer.AttributesRecord {
	// Permission (name: the set): the members of a set are read; with `managedclustersets/clusters`, its clusters.
	return authorizer.AttributesRecord{Verb: "get", APIGroup: cluster.GroupName, APIVersion: "v1beta2", Resource: "managedclustersets", Name: name}
}

// needsSetError describes the rule that shows a user the objects of a set.
type needsSetError struct{ user, set, shown string }

func (e *needsSetError) Error() string {
	return fmt.Sprintf("user %q needs the RBAC rule {apiGroups: [%q], resources: [%q], resourceNames: [%q], verbs: [%q]} to see %s",
		e.user, "cluster.open-cluster-management.io", "managedclustersets", e.set, "get", e.shown)
}
