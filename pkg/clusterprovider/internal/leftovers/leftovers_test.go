// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

func TestLeftovers_OfDeletedRequestsOnly(t *testing.T) {
	s := newSwept(t)
	s.grant(request("kept", "kept-1"), s.Identity, true)
	s.grant(request("others", "others-1"), hub.Identity{Name: "other", Environment: "e"}, false)
	kept := s.objects()
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil || s.asked > 0 {
		t.Errorf("nothing remains, and the hub gets %d requests: %v", s.asked, err)
	}
	s.want(kept)

	lost, long := request("lost", "lost-1"), request(longName, "long-1")
	s.grant(lost, s.Identity, false)
	s.grant(long, s.Identity, false)
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil || s.asked != 6 {
		t.Errorf("the hub gets %d requests for two requests, their token sources, and for the Cluster: %v", s.asked, err)
	}
	// Their names are the request's, and they have no bindings.
	kept["ClusterRole lost-named"], kept["ClusterRole "+long.Name+"-named"] = "lost-1", "long-1"
	s.want(kept)

}

const longName = "a-name-that-is-longer-than-the-value-of-a-label-can-be-so-that-its-end-is-a-hash"

func TestLeftovers_RetainedWhenUncertain(t *testing.T) {
	resource := v1alpha1.SchemeGroupVersion.WithResource("accessrequests").GroupResource()
	fails := func(err error) func(*swept) { return func(s *swept) { s.onHub = func() error { return err } } }
	for name, c := range map[string]struct {
		change func(*swept)
		told   bool
	}{
		"the hub fails":                   {fails(apierrors.NewInternalError(errors.New("etcd"))), true},
		"the hub refuses":                 {fails(apierrors.NewForbidden(resource, "", nil)), true},
		"the hub does not serve requests": {fails(apierrors.NewNotFound(resource, "")), true},
		"it is another hub's":             {func(s *swept) { s.cluster = s.anotherHub() }, false},
		"another hub answers":             {func(s *swept) { s.anotherHub() }, false},
		"another hub answers, without the Cluster": {func(s *swept) {
			if err := s.client.Delete(t.Context(), s.cluster.DeepCopy()); err != nil {
				t.Error(err)
			}
		}, true},
		"the cache is outdated": {func(s *swept) {
			if err := s.client.Create(t.Context(), request("lost", "lost-1")); err != nil {
				t.Error(err)
			}
			s.client = fake.NewClientBuilder().WithScheme(hub.Scheme).Build()
		}, false},
		"without the hub":                {func(s *swept) { s.forget("cluster-uid") }, false},
		"without the request":            {func(s *swept) { s.forget("accessrequest") }, false},
		"without the UID of the request": {func(s *swept) { s.forget("accessrequest-uid") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwept(t)
			s.grant(request("lost", "lost-1"), s.Identity, false)
			c.change(s)
			before := s.objects()
			if err := s.sweep(t.Context(), s.in, s.cluster); (err != nil) != c.told {
				t.Errorf("got %v", err)
			}
			s.want(before)
		})
	}
}

// TestLeftovers_LabelsAreNotSufficient: a user who may label objects in a cluster must not get those of others deleted that way.
func TestLeftovers_LabelsAreNotSufficient(t *testing.T) {
	s := newSwept(t)
	lost := request("lost", "lost-1")
	s.grant(request("kept", "kept-1"), s.Identity, true)
	forged := metav1.ObjectMeta{Labels: s.AccessLabels(lost), Annotations: s.Origin(lost, s.cluster)}
	in := func(namespace, name string) metav1.ObjectMeta {
		meta := *forged.DeepCopy()
		meta.Namespace, meta.Name = namespace, name
		return meta
	}
	account := rights.SubjectsOf(rights.ServiceAccount(s.Hash(lost)))
	admins := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "admins"}}
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "cluster-admin"), Subjects: admins},
		&rbacv1.ClusterRoleBinding{ObjectMeta: in("", "shared"), Subjects: append(account, admins...)},
		&rbacv1.RoleBinding{ObjectMeta: in("kube-system", "bootstrap"), Subjects: admins},
		&rbacv1.ClusterRole{ObjectMeta: in("", "edit")},
		&rbacv1.Role{ObjectMeta: in("web", "openmcp:permission:aaaaaaaa:0")},
		&rbacv1.ClusterRole{ObjectMeta: in("", "openmcp:permission:"+s.Hash(lost)+":0:x")},
		&corev1.ServiceAccount{ObjectMeta: in("default", s.Hash(lost))},
		&corev1.ServiceAccount{ObjectMeta: in("accessrequests", "clusterhub-token-minter")},
	} {
		if err := s.in.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	// An object that really belongs to another request.
	kept := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "openmcp:roleref:" + s.Hash(request("kept", "")) + ":0"}}
	if err := s.in.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	kept.Annotations = forged.Annotations
	if err := s.in.Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	before := s.objects()
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil {
		t.Error(err)
	}
	s.want(before)
}

// TestLeftovers_RetainsConcurrentlyChanged: a request with the same name may be granted during the search.
func TestLeftovers_RetainsConcurrentlyChanged(t *testing.T) {
	s := newSwept(t)
	s.grant(request("again", "again-1"), s.Identity, false)
	granted := false
	s.onHub = func() error {
		if !granted {
			granted = true
			s.grant(request("again", "again-2"), s.Identity, true)
		}
		return nil
	}
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil || !granted {
		t.Error(granted, err)
	}
	for object, uid := range s.objects() {
		if uid != "again-2" {
			t.Errorf("%s is that of %s", object, uid)
		}
	}
	if got := len(s.objects()); got != 8 {
		t.Errorf("there are %d objects of 8", got)
	}
}

// TestLeftovers_NextRequestOfSameName: a token of a deleted request must not get the rights of the next request with its name.
func TestLeftovers_NextRequestOfSameName(t *testing.T) {
	s := newSwept(t)
	lost := request("lost", "lost-1")
	account := rights.ServiceAccount(s.Hash(lost))
	s.grant(lost, s.Identity, false)
	if err := s.in.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Fatal(err)
	}
	former := account.UID
	s.grant(request("lost", "lost-2"), s.Identity, true)
	if err := s.in.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil || account.UID == former {
		t.Errorf("the ServiceAccount is still that of before: %v", err)
	}
	granted := s.objects()
	for object, uid := range granted {
		if uid != "lost-2" {
			t.Errorf("%s is that of %s", object, uid)
		}
	}
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil {
		t.Error(err)
	}
	s.want(granted)

	// A request that is never granted does not protect what was left before.
	stuck := newSwept(t)
	stuck.grant(lost, stuck.Identity, false)
	if err := stuck.client.Create(t.Context(), request("lost", "lost-2")); err != nil {
		t.Fatal(err)
	}
	if err := stuck.sweep(t.Context(), stuck.in, stuck.cluster); err != nil {
		t.Error(err)
	}
	stuck.want(map[string]string{"ClusterRole lost-named": "lost-1"})
}

// TestLeftovers_DeletesRightsFirst: a crash or an error in the middle leaves no rights, and the rest is deleted next time.
func TestLeftovers_DeletesRightsFirst(t *testing.T) {
	s := newSwept(t)
	s.grant(request("lost", "lost-1"), s.Identity, false)
	var deleted []string
	failing := interceptor.NewClient(s.in, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if len(deleted) == 5 {
				return errors.New("killed")
			}
			deleted = append(deleted, apply.IDOf(object).Kind)
			return c.Delete(ctx, object, opts...)
		},
	})
	if err := s.sweep(t.Context(), failing, s.cluster); err == nil {
		t.Error("the error is not logged")
	}
	want := []string{"RoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "Role"}
	if !slices.Equal(deleted, want) {
		t.Errorf("deleted %v, not %v", deleted, want)
	}
	if err := s.sweep(t.Context(), s.in, s.cluster); err != nil {
		t.Error(err)
	}
	s.want(map[string]string{"ClusterRole lost-named": "lost-1"})
}

// TestLeftovers_TokenSources: the token source of a request is deleted with the rest, and those of others stay, whatever UIDs are written into the
// cluster.
func TestLeftovers_TokenSources(t *testing.T) {
	for name, c := range map[string]struct {
		by        hub.Identity
		of        string
		refuse    error
		goes, end bool
	}{
		"its own":                {of: "teams/lost", goes: true, end: true},
		"another request's":      {of: "teams/kept", end: true},
		"another provider's":     {by: hub.Identity{Name: "q", Environment: "e"}, of: "teams/lost", end: true},
		"Secrets are forbidden":  {of: "teams/lost", refuse: apierrors.NewForbidden(corev1.Resource("secrets"), "", nil), end: true},
		"unknown, with an error": {of: "teams/lost", refuse: errors.New("the hub is away")},
	} {
		t.Run(name, func(t *testing.T) {
			s, lost := newSwept(t), request("lost", "lost-1")
			s.grant(lost, s.Identity, false)
			if c.by == (hub.Identity{}) {
				c.by = s.Identity
			}
			place := hub.TokenSourceName(lost)
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name, Labels: c.by.OwnLabels(), UID: "source"},
				Data:       map[string][]byte{v1alpha1.TokenSourceAccessRequestKey: []byte(c.of)},
			}
			if err := s.client.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			s.live = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, server client.WithWatch, name client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if name == place && c.refuse != nil {
						return c.refuse
					}
					return server.Get(ctx, name, o, opts...)
				},
			})
			if err := s.sweep(t.Context(), s.in, s.cluster); (err == nil) != c.end {
				t.Errorf("got %v", err)
			}
			if err := s.client.Get(t.Context(), place, secret); apierrors.IsNotFound(err) != c.goes {
				t.Errorf("the token source: %v", err)
			}
			if _, left := s.objects()["ServiceAccount accessrequests/"+s.Hash(lost)]; left == c.end {
				t.Errorf("the ServiceAccount remains: %t", left)
			}
		})
	}
}

func TestLeftovers_AreListedInPages(t *testing.T) {
	s := newSwept(t)
	s.grant(request("lost", "lost-1"), s.Identity, false)
	bindings := rights.Kinds[1]
	paged := interceptor.NewClient(s.in, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := client.ListOptions{}
			options.ApplyOptions(opts)
			if err := c.List(ctx, list, opts...); err != nil || options.Limit == 0 {
				return err
			}
			page := list.(*metav1.PartialObjectMetadataList)
			if options.Continue == "" {
				page.Items, page.Continue = page.Items[:1], "1"
			} else {
				page.Items = page.Items[1:]
			}
			return nil
		},
	})
	if all, err := s.list(t.Context(), paged, bindings); err != nil || len(all) != 3 {
		t.Errorf("%d of 3, %v", len(all), err)
	}
}

// connects is a Provider whose clusters are unreachable.
type connects struct {
	clusterprovider.Provider
	times int
}

func (c *connects) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	c.times++
	return nil, errors.New("out of reach")
}

func TestLeftovers_SearchIsRateLimited(t *testing.T) {
	s, provider := newSwept(t), &connects{}
	s.provider = provider
	for range 3 {
		s.Search(t.Context(), s.cluster)
	}
	due, _ := s.due.Load(s.cluster.UID)
	if after := time.Until(due.(time.Time)); provider.times != 1 || after < clusterprovider.ResyncInterval-time.Minute || after > 2*clusterprovider.ResyncInterval {
		t.Errorf("searched %d times, and again in %s", provider.times, after)
	}
	for range 3 {
		s.SearchLast(t.Context(), s.cluster)
	}
	if provider.times != 2 {
		t.Errorf("searched %d times in the end", provider.times-1)
	}
	s.Forget(s.cluster)
	s.SearchLast(t.Context(), s.cluster)
	if provider.times != 3 {
		t.Error("a cluster that was not searched has no last search")
	}
}

func TestLeftovers_SearchAfterRequestVanishes(t *testing.T) {
	s, provider := newSwept(t), &connects{}
	s.provider = provider
	vanish := func(uid types.UID, before func(*v1alpha1.AccessRequest)) int {
		t.Helper()
		ar := request("lost", uid)
		ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: s.cluster.Namespace, Name: s.cluster.Name}
		ar.Status.Conditions = []metav1.Condition{{Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue}}
		before(ar)
		return len(s.Vanished(t.Context(), ar))
	}
	s.Search(t.Context(), s.cluster)
	if n := vanish("released", func(ar *v1alpha1.AccessRequest) { s.LetGo(ar) }); n != 0 {
		t.Errorf("after a finalized request, %d clusters are searched", n)
	}
	if n := vanish("never", func(ar *v1alpha1.AccessRequest) { ar.Status.Conditions = nil }); n != 0 {
		t.Errorf("after a request without access, %d clusters are searched", n)
	}
	s.Search(t.Context(), s.cluster)
	if provider.times != 1 {
		t.Errorf("searched %d times", provider.times)
	}
	if n := vanish("failing", func(ar *v1alpha1.AccessRequest) {
		ar.Status.Conditions[0].Status, ar.Status.SecretRef = metav1.ConditionFalse, &v1alpha1.LocalObjectReference{Name: "x"}
	}); n != 1 {
		t.Errorf("after a request whose access could not be revoked or renewed, %d clusters are searched", n)
	}
	if n := vanish("lost", func(*v1alpha1.AccessRequest) {}); n != 1 {
		t.Errorf("%d clusters are searched", n)
	}
	s.Search(t.Context(), s.cluster)
	if provider.times != 2 {
		t.Errorf("searched %d times", provider.times)
	}
	vanish("lost", func(*v1alpha1.AccessRequest) {})
	s.SearchLast(t.Context(), s.cluster)
	if provider.times != 3 {
		t.Error("a cluster that is released concurrently has no last search")
	}
}
