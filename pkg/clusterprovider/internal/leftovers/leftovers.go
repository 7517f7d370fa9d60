// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leftovers deletes the leftovers of deleted AccessRequests from clusters.
package leftovers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

const (
	// leftoversInterval is the approximate interval between searches of a cluster, and leftoversTimeout their maximum duration.
	leftoversInterval = time.Hour
	leftoversTimeout  = time.Minute
)

// Leftovers deletes from clusters what was created for deleted AccessRequests whose access was not revoked: their finalizer was removed
// by force, or the hub was restored from a backup that is older than the access. It finds the objects by their labels and annotations, which prove
// nothing: users of the cluster may have written them. So each object must have what only the provider sets, and the hub must confirm that the
// request is gone.
type Leftovers struct {
	hub.Identity
	provider clusterprovider.Provider
	client   client.Client
	// live reads what must not be stale.
	live client.Reader
	// Trust ends the trust in OIDC providers that no AccessRequest specifies. It may be nil.
	Trust func(context.Context, *v1alpha1.Cluster) error
	// due is the time of the next search of a cluster, by the UID of its Cluster.
	due sync.Map
	// released has the UIDs of requests whose finalizer was removed after their access had been revoked.
	released sync.Map
}

// New returns Leftovers without any searches yet.
func New(own hub.Identity, provider clusterprovider.Provider, c client.Client, live client.Reader) *Leftovers {
	return &Leftovers{Identity: own, provider: provider, client: c, live: live}
}

// LetGo records that a request's finalizer is removed because its access has been revoked.
func (r *Leftovers) LetGo(ar *v1alpha1.AccessRequest) { r.released.Store(ar.UID, nil) }

// Vanished schedules an immediate search of the cluster of a request that was deleted without LetGo.
func (r *Leftovers) Vanished(ctx context.Context, object client.Object) []reconcile.Request {
	ar, cluster := object.(*v1alpha1.AccessRequest), &v1alpha1.Cluster{}
	_, released := r.released.LoadAndDelete(ar.UID)
	if released || ar.Spec.ClusterRef == nil || !answer.MayHaveAccess(ar) {
		return nil
	}
	name := ar.Spec.ClusterRef.NamespacedName()
	if err := r.client.Get(ctx, name, cluster); err != nil { // the next search covers it
		return nil
	}
	if cluster.DeletionTimestamp.IsZero() { // otherwise the last search covers it
		r.due.Store(cluster.UID, time.Time{})
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// Search searches a usable cluster, if it is due.
func (r *Leftovers) Search(ctx context.Context, cluster *v1alpha1.Cluster) {
	if due, ok := r.due.Load(cluster.UID); ok && time.Now().Before(due.(time.Time)) {
		return
	}
	// First, so that it is not lost if a request vanishes during the search.
	r.searchAfter(cluster, leftoversInterval)
	if !r.remove(ctx, cluster) {
		r.searchAfter(cluster, clusterprovider.ResyncInterval)
	}
}

func (r *Leftovers) searchAfter(cluster *v1alpha1.Cluster, interval time.Duration) {
	r.due.Store(cluster.UID, time.Now().Add(wait.Jitter(interval, 0.2)))
}

// searchedLast is the due time of a cluster after its last search.
var searchedLast = time.Unix(1<<40, 0)

// SearchLast searches a cluster once before its Cluster is deleted: the cluster may live on, and is not searched later.
func (r *Leftovers) SearchLast(ctx context.Context, cluster *v1alpha1.Cluster) {
	if due, _ := r.due.Swap(cluster.UID, searchedLast); due != any(searchedLast) {
		r.remove(ctx, cluster)
	}
}

// Forget drops the state of a cluster whose Cluster is deleted.
func (r *Leftovers) Forget(cluster *v1alpha1.Cluster) { r.due.Delete(cluster.UID) }

func (r *Leftovers) remove(ctx context.Context, cluster *v1alpha1.Cluster) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, leftoversTimeout)
	defer cancel()
	if err := r.removeFrom(ctx, cluster); err != nil {
		ctrl.LoggerFrom(ctx).Info("Deleting the leftovers of deleted AccessRequests failed and will be retried", "reason", err.Error())
		return false
	}
	return true
}

func (r *Leftovers) removeFrom(ctx context.Context, cluster *v1alpha1.Cluster) error {
	config, err := r.provider.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	t, err := target.WithShortTimeout(config, nil)
	if err != nil {
		return err
	}
	if err := r.sweep(ctx, t, cluster); err != nil || r.Trust == nil {
		return err
	}
	return r.Trust(ctx, cluster)
}

// sweep deletes everything that it can, and returns the first error.
func (r *Leftovers) sweep(ctx context.Context, c client.Client, cluster *v1alpha1.Cluster) (failure error) {
	var strange []string
	gone := map[string]bool{}
	for _, kind := range rights.Kinds {
		objects, err := r.list(ctx, c, kind)
		if err != nil {
			return cmp.Or(failure, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err))
		}
		for i := range objects {
			object := &objects[i]
			object.SetGroupVersionKind(kind)
			ar := r.RequestOf(object, cluster)
			if ar == nil || r.cached(ctx, ar) {
				continue
			}
			made, err := r.isCreatedFor(ctx, c, object, ar)
			if err == nil && !made {
				strange = append(strange, apply.IDOf(object).String())
			}
			id := client.ObjectKeyFromObject(ar).String() + "/" + string(ar.UID)
			if _, asked := gone[id]; made && !asked {
				gone[id], err = r.gone(ctx, cluster, ar)
			}
			if made && gone[id] && kind.Kind == rbacv1.ServiceAccountKind {
				err = r.deleteTokenSource(ctx, ar) // without the ServiceAccount, it would not be found
			}
			if made && gone[id] && err == nil {
				err = r.delete(ctx, c, object, ar)
			}
			failure = cmp.Or(failure, err)
		}
	}
	if len(strange) > 0 {
		ctrl.LoggerFrom(ctx).Info("Skipping objects that refer to a deleted AccessRequest: their names do not distinguish them from the objects "+
			"of other owners. Delete them if they are not needed", "count", len(strange), "first", strange[0])
	}
	return failure
}

// RemoveAll deletes what was created for any AccessRequest of a Cluster, whether the hub has the request or not.
func (r *Leftovers) RemoveAll(ctx context.Context, c client.Client, cluster *v1alpha1.Cluster) error {
	for _, kind := range rights.Kinds {
		objects, err := r.list(ctx, c, kind)
		if err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		for i := range objects {
			object := &objects[i]
			object.SetGroupVersionKind(kind)
			ar := r.RequestOf(object, cluster)
			if ar == nil {
				continue
			}
			made, err := r.isCreatedFor(ctx, c, object, ar)
			if err == nil && made {
				err = c.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
			}
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("%s: %w", apply.IDOf(object), err)
			}
		}
	}
	return nil
}

// list returns all objects of a kind with this provider's labels, of any hub.
func (r *Leftovers) list(ctx context.Context, c client.Client, kind schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	list := func(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page, c.List(ctx, page, client.HasLabels{r.NameLabel()}, client.Limit(options.Limit), client.Continue(options.Continue))
	}
	all, err := paging.List(ctx, list, metav1.ListOptions{})
	return all.Items, err
}

// cached reports whether the cache makes a request to the hub unnecessary.
func (r *Leftovers) cached(ctx context.Context, ar *v1alpha1.AccessRequest) bool {
	have := &v1alpha1.AccessRequest{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(ar), have)
	return err == nil && have.UID == ar.UID || client.IgnoreNotFound(err) != nil
}

// gone reports whether the hub, which has the Cluster, does not have a request any more. It sends a list: a hub that does not serve AccessRequests at
// the moment would respond to a get with NotFound, too.
func (r *Leftovers) gone(ctx context.Context, cluster *v1alpha1.Cluster, ar *v1alpha1.AccessRequest) (bool, error) {
	have := &metav1.PartialObjectMetadataList{}
	have.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("AccessRequestList"))
	if err := r.live.List(ctx, have, client.InNamespace(ar.Namespace), client.MatchingFields{metav1.ObjectNameField: ar.Name}); err != nil {
		return false, err
	}
	for _, other := range have.Items {
		if other.UID == ar.UID {
			return false, nil
		}
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Cluster"))
	err := r.live.Get(ctx, client.ObjectKeyFromObject(cluster), now)
	return err == nil && now.UID == cluster.UID, err
}

// isCreatedFor reports whether an object can only have been created by the provider for a request. Users who can label another user's object must not get it
// deleted that way. The hash of the request is in all names that the provider assigns, and where the request assigns a name to its rights, in the
// subject that they are bound to. Roles with such names stay: without a binding they grant no rights.
func (r *Leftovers) isCreatedFor(
	ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, ar *v1alpha1.AccessRequest,
) (bool, error) {
	account := rights.ServiceAccount(r.Hash(ar))
	if object.Kind == rbacv1.ServiceAccountKind {
		return client.ObjectKeyFromObject(object) == client.ObjectKeyFromObject(account), nil
	}
	if given := rights.GivenName.FindStringSubmatch(object.Name); given != nil && given[1] == account.Name {
		return true, nil
	}
	whole, err := rights.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return false, err
	}
	var subjects []rbacv1.Subject
	switch binding := whole.(type) {
	case *rbacv1.RoleBinding:
		err = c.Get(ctx, client.ObjectKeyFromObject(object), binding)
		subjects = binding.Subjects
	case *rbacv1.ClusterRoleBinding:
		err = c.Get(ctx, client.ObjectKeyFromObject(object), binding)
		subjects = binding.Subjects
	}
	return reflect.DeepEqual(subjects, rights.SubjectsOf(account)), err
}

// deleteTokenSource deletes the Secret with which hub-apiserver would issue short-lived tokens. It is deleted if its content is for the request: the
// UID may be another request's.
func (r *Leftovers) deleteTokenSource(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	secret := &corev1.Secret{}
	err := r.live.Get(ctx, hub.TokenSourceName(ar), secret)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // a provider need not have token sources
		return nil
	}
	if err != nil {
		return err
	}
	of := string(secret.Data[v1alpha1.TokenSourceAccessRequestKey])
	if !r.CreatedFor(ar, secret) || of != client.ObjectKeyFromObject(ar).String() {
		return nil
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
}

// delete deletes an object that has not changed since it was read: it may now belong to another request with this name.
func (r *Leftovers) delete(
	ctx context.Context, c client.Client, object *metav1.PartialObjectMetadata, ar *v1alpha1.AccessRequest,
) error {
	err := c.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting the %s: %w", apply.IDOf(object), err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a leftover of a deleted AccessRequest in the cluster",
		"object", apply.IDOf(object), "accessRequest", client.ObjectKeyFromObject(ar), "uid", ar.UID)
	return nil
}
