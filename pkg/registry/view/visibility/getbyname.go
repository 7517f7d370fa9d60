// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// maxAsked is the maximum number of sets of an object for which the authorizer is called. An object may be in many.
const maxAsked = 4

// getByName returns an object that the user may get by its name, or by a set that it is in. The RBAC rules determine for which sets the authorizer is
// called, so that a user who may see nothing causes one call.
func (r *Reader) getByName(ctx context.Context, who user.Info, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if !position.Possible(name) {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource, name)
	}
	predicate := storage.Everything
	// Permission (resource: managedclusters; name: the cluster): a cluster is read by its name in `clusterview.open-cluster-management.io`.
	byName := authorizer.AttributesRecord{Verb: "get", APIGroup: cluster.GroupName, APIVersion: "v1", Resource: r.Resource.Resource, Name: name}
	may, err := r.may(ctx, who, byName)
	if err != nil {
		return nil, err
	}
	if may {
		return r.first(ctx, r.Resource.NameKey(name), storage.ListOptions{
			ResourceVersion: options.ResourceVersion, Recursive: true, Predicate: predicate,
		}, name)
	}
	refused := apierrors.NewForbidden(r.Resource.GroupResource, name, &needsNameError{who.GetName(), name})
	what, _, err := r.now(ctx, who)
	if err != nil {
		return nil, err
	}
	if what.Empty() {
		permission.Lacked(ctx, auditSuffix, rule(byName))
		return nil, refused
	}
	predicate = storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector(position.NameField, name),
		GetAttrs: r.Resource.Attributes, IndexFields: []string{position.NameField},
	}
	rows := r.Resource.NewList()
	err = r.Objects.GetList(ctx, r.Resource.AllSets(), storage.ListOptions{
		ResourceVersion: options.ResourceVersion, Recursive: true, Predicate: predicate,
	}, rows)
	if err != nil {
		return nil, err
	}
	asked := 0
	for row := range each(rows) {
		set, _ := position.RowSet(row)
		if !what.Has(set) || asked == maxAsked {
			continue
		}
		asked++
		right := setRight(set)
		right.Subresource = "clusters"
		if may, err := r.may(ctx, who, right); err != nil {
			return nil, err
		} else if may {
			position.Plain(row)
			return row, nil
		}
	}
	permission.Lacked(ctx, auditSuffix, rule(byName))
	return nil, refused
}

// Shows returns a function that reports which sets show a user their clusters, by the current RBAC rules.
func (r *Reader) Shows(ctx context.Context, who user.Info) (func(set string) bool, error) {
	what, _, err := r.now(ctx, who)
	return what.Has, err
}

// needsNameError describes the rules that show a user a cluster.
type needsNameError struct{ user, name string }

func (e *needsNameError) Error() string {
	return fmt.Sprintf("user %q needs the RBAC rule {apiGroups: [%q], resources: [%q], resourceNames: [%q], verbs: [%q]}, or the same for %q "+
		"with a set of the cluster, to see the cluster", e.user, "cluster.open-cluster-management.io", "managedclusters", e.name, "get",
		"managedclustersets/clusters")
}
