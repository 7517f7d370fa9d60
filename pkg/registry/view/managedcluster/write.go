// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	registry "github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// maxAsked is the maximum number of sets of a cluster for which the authorizer is called. Only sets whose clusters the user sees count.
const maxAsked = 16

// Stored has the registries of the stored objects.
type Stored struct {
	Clusters interface {
		rest.Updater
		rest.GracefulDeleter
	}
	Sets rest.Lister
	// Cached has the clusters, so that the view needs no copies. Without it, the view keeps a second copy of each.
	Cached Cached
}

// REST also accepts writes of the clusters that a user sees. They are writes of the stored clusters: the stored object, its versions and its managers
// are the same as after a write there. The server must also run admission for them as for the stored resource.
type REST struct {
	*filtered.REST
	stored Stored
}

var (
	_ rest.Patcher         = &REST{}
	_ rest.GracefulDeleter = &REST{}

	_ rest.CorruptObjectDeleterProvider = &REST{}
)

// GetCorruptObjDeleter implements rest.CorruptObjectDeleterProvider: objects that cannot be read are in no view.
func (r *REST) GetCorruptObjDeleter() rest.GracefulDeleter { return corrupt{} }

// corrupt deletes nothing.
type corrupt struct{}

// Delete implements rest.GracefulDeleter.
func (corrupt) Delete(context.Context, string, rest.ValidateObjectFunc, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, apierrors.NewBadRequest("ignoreStoreReadErrorWithClusterBreakingPotential: a cluster that cannot be read is not shown here, " +
		"delete it as one of the " + registry.Kind.Resource.String())
}

// Update implements rest.Updater. It creates nothing.
func (r *REST) Update(
	ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	applies := forceAllowCreate // Of all writes to a name, only those by server-side apply have it.
	may, err := r.right(ctx, name, "update", "patch")
	if err != nil {
		if applies && apierrors.IsNotFound(err) {
			err = errNotCreated(name)
		}
		return nil, false, err
	}
	object, _, err := r.stored.Clusters.Update(ctx, name, update{objInfo, may, applies}, createValidation, updateValidation, false, options)
	if err != nil {
		return nil, false, err
	}
	written, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("the update gave a %T", object))
	}
	shown, _, err := shownOf(written)
	return shown, false, err
}

// Delete implements rest.GracefulDeleter. It is checked like an update: the store deletes the version for which the right was checked, or checks
// again. The server must remove the verb from discovery.
func (r *REST) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	may, err := r.right(ctx, name, "delete")
	if err != nil {
		return nil, false, err
	}
	if options == nil { // the store uses this default
		options = metav1.NewDeleteOptions(0)
	}
	// They are checked after the right, because the error contains fields of the object.
	preconditions := options.Preconditions
	options = options.DeepCopy()
	options.Preconditions = nil
	object, deleted, err := r.stored.Clusters.Delete(ctx, name, func(ctx context.Context, old runtime.Object) error {
		stored, ok := old.(*cluster.ManagedCluster)
		if !ok {
			return apierrors.NewInternalError(fmt.Errorf("a deletion of a cluster got a %T", old))
		}
		if err := may(ctx, stored); err != nil {
			return err
		}
		if err := checkPreconditions(stored, preconditions); err != nil {
			return err
		}
		return validate(ctx, old)
	}, options)
	if err != nil {
		return nil, false, err
	}
	left, ok := object.(*cluster.ManagedCluster)
	if !ok { // the object is gone, and the result reports it
		return object, deleted, nil
	}
	if left.ResourceVersion == "" { // for a dry run that removes the last finalizer, the store returns an empty object: the server reports what is gone
		return nil, deleted, nil
	}
	shown, _, err := shownOf(left)
	return shown, deleted, err
}

// may returns nil if the user of a request may execute it on a stored cluster.
type may func(ctx context.Context, stored *cluster.ManagedCluster) error

// right returns the check of a write with one of the verbs. A user who does not see the cluster gets the error of Get, which does not reveal whether
// the cluster exists.
func (r *REST) right(ctx context.Context, name string, verbs ...string) (may, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	info, ok := request.RequestInfoFrom(ctx)
	if !ok || !slices.Contains(verbs, info.Verb) {
		return nil, apierrors.NewInternalError(fmt.Errorf("the request is not one of %q", verbs))
	}
	if _, err := r.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	return func(ctx context.Context, c *cluster.ManagedCluster) error { return r.mayWrite(ctx, who, info.Verb, c) }, nil
}

// writes is the suffix of the audit annotation with the right that a write used.
const writes = "clusterview-write"

// mayWrite returns nil for a user who has the verb on the cluster by its name, or on the clusters of a set that the cluster is currently in, and
// whose clusters the user sees.
func (r *REST) mayWrite(ctx context.Context, who user.Info, verb string, c *cluster.ManagedCluster) error {
	// Permission (verb: that of the request; name: the cluster): a cluster is changed or deleted in `clusterview.open-cluster-management.io`.
	byName := rbac.Permission{Verb: verb, Group: cluster.GroupName, Resource: "managedclusters", Name: c.Name}
	// Permission (verb: that of the request; name: a set of the cluster): a cluster is changed or deleted in `clusterview.open-cluster-management.io`
	// by a user without a permission for its name.
	bySet := rbac.Permission{Verb: verb, Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "clusters"}
	held, err := permission.Holds(ctx, r.Visible.Authorizer, who, byName)
	if held != nil {
		permission.Used(ctx, writes, *held)
		return nil
	}
	if err == nil {
		var sets []string
		sets, err = r.SetsOf(ctx, who, c)
		if err != nil {
			return err
		}
		for _, set := range sets {
			rule := bySet
			rule.Name = set
			held, err = permission.Holds(ctx, r.Visible.Authorizer, who, rule)
			if held != nil {
				permission.Used(ctx, writes, *held)
				return nil
			}
			if err != nil {
				break
			}
		}
	}
	permission.Lacked(ctx, writes, byName)
	refusal := fmt.Errorf("user %q needs the RBAC rule %s, or %s with a set of the cluster whose clusters the user sees, to %s the cluster",
		who.GetName(), byName, bySet, verb)
	return apierrors.NewForbidden(resource.GroupResource, c.Name, errors.Join(refusal, err))
}

// SetsOf returns the sorted sets that a cluster is in, as far as the user sees their clusters: the first of them, for which the authorizer is called
// when a right by set counts. They are read each time, since a set may have been changed on another replica.
func (r *REST) SetsOf(ctx context.Context, who user.Info, c *cluster.ManagedCluster) (names []string, err error) {
	shows, err := r.Visible.Shows(ctx, who)
	if err != nil {
		return nil, err
	}
	object, err := r.stored.Sets.List(ctx, &internalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	list, ok := object.(*cluster.ManagedClusterSetList)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the list of sets is a %T", object))
	}
	for i := range list.Items {
		set := &list.Items[i]
		if !shows(set.Name) {
			continue
		}
		// If the selector of a set is invalid, its clusters are unknown.
		if selects, err := selector.For(set); err == nil && selects.Matches(labels.Set(c.Labels)) {
			names = append(names, set.Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxAsked)], nil
}

// update converts an update of a cluster as shown to one of the stored cluster.
type update struct {
	rest.UpdatedObjectInfo
	may may
	// applies reports that it is a server-side apply.
	applies bool
}

// Preconditions implements rest.UpdatedObjectInfo. They are checked after the right, because the error contains fields of the object.
func (update) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject implements rest.UpdatedObjectInfo. The store calls it for the object that it then compares with the stored one, again after a
// concurrent write.
func (u update) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	stored, ok := old.(*cluster.ManagedCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("an update of a cluster got a %T", old))
	}
	if err := u.may(ctx, stored); err != nil {
		return nil, err
	}
	if err := checkPreconditions(stored, u.UpdatedObjectInfo.Preconditions()); err != nil {
		return nil, err
	}
	shown, _, err := shownOf(stored)
	if err != nil {
		return nil, err
	}
	if u.applies {
		shown.ManagedFields = shownManagers(stored.ManagedFields)
	}
	object, err := u.UpdatedObjectInfo.UpdatedObject(ctx, shown)
	if err != nil {
		return nil, storedConflicts(err)
	}
	updated, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("an update made a %T of a cluster", object))
	}
	if err := generic.CheckVersion("metadata.resourceVersion", updated.ResourceVersion); err != nil {
		return nil, err
	}
	// Without a version, the store decides.
	if version := updated.ResourceVersion; version != "" && version != "0" {
		if err := checkVersion(stored, version); err != nil {
			return nil, err
		}
		updated.ResourceVersion = stored.ResourceVersion
	}
	updated.ManagedFields, err = storedManagers(updated.ManagedFields)
	return updated, err
}

// checkPreconditions rejects a write with preconditions for another cluster of the name, or for another version.
func checkPreconditions(stored *cluster.ManagedCluster, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if err := (&storage.Preconditions{UID: p.UID}).Check(stored.Name, stored); err != nil {
		return err
	}
	if p.ResourceVersion == nil {
		return nil
	}
	if err := generic.CheckVersion("preconditions.resourceVersion", *p.ResourceVersion); err != nil {
		return err
	}
	return checkVersion(stored, *p.ResourceVersion)
}

// checkVersion rejects a write that is based on a version of this API, if the cluster was written after it.
func checkVersion(stored *cluster.ManagedCluster, version string) error {
	_, revision, err := shownOf(stored)
	if err != nil {
		return err
	}
	if based, err := strconv.ParseUint(version, 10, 64); err != nil || position.RevisionOf(based) < revision {
		return apierrors.NewConflict(resource.GroupResource, stored.Name, errors.New(
			"the cluster has been changed since that version, or it is a version of another resource: get the cluster here, and try again"))
	}
	return nil
}

// shownOf returns a stored cluster with the version that it has here: the end of the revision that wrote it.
func shownOf(stored *cluster.ManagedCluster) (*cluster.ManagedCluster, uint64, error) {
	revision, err := strconv.ParseUint(stored.ResourceVersion, 10, 64)
	if err != nil {
		return nil, 0, apierrors.NewInternalError(err)
	}
	shown := copyOf(stored)
	position.SetVersion(shown, position.Version(revision, position.End))
	return shown, revision, nil
}
