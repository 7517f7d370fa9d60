// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package leftovers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// swept is a cluster and its hub, which can lose requests.
type swept struct {
	*Leftovers
	t       *testing.T
	in      client.WithWatch
	cluster *v1alpha1.Cluster
	// onHub is called at each live read of the hub.
	onHub func() error
	// asked is the number of live reads of the hub.
	asked int
}

func newSwept(t *testing.T) *swept {
	s := &swept{t: t, onHub: func() error { return nil }}
	s.cluster = &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(s.cluster).
		WithIndex(&v1alpha1.AccessRequest{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.asked++
			return errors.Join(s.onHub(), c.Get(ctx, name, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.asked++
			return errors.Join(s.onHub(), c.List(ctx, list, opts...))
		},
	})
	s.in = interceptor.NewClient(fake.NewClientBuilder().WithScheme(rights.Scheme).Build(), interceptor.Funcs{
		// Like servers, and unlike fakes.
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			object.SetUID(uuid.NewUUID())
			return c.Create(ctx, object, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			have, options := object.DeepCopyObject().(client.Object), client.DeleteOptions{}
			options.ApplyOptions(opts)
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), have); err != nil {
				return err
			}
			if uid := options.Preconditions.UID; *uid != have.GetUID() {
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("the UID"))
			}
			return c.Delete(ctx, object, opts...)
		},
	})
	s.Leftovers = &Leftovers{Identity: hub.Identity{Name: "p", Environment: "e"}, client: server, live: live}
	return s
}

func request(name string, uid types.UID) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: uid}}
}

// grant creates what the provider creates for a request, and the request on the hub if onHub is true.
func (s *swept) grant(ar *v1alpha1.AccessRequest, by hub.Identity, onHub bool) {
	s.t.Helper()
	if onHub {
		if err := s.client.Create(s.t.Context(), ar); err != nil {
			s.t.Fatal(err)
		}
	}
	asks := &v1alpha1.AccessRequest{}
	asks.Spec.Token = &v1alpha1.TokenConfig{
		Permissions: []v1alpha1.PermissionsRequest{{}, {Namespace: "web"}, {Name: ar.Name + "-named"}},
		RoleRefs:    []v1alpha1.RoleRef{{Kind: "ClusterRole", Name: "view"}},
	}
	wanted, err := rights.Of(asks, by.Hash(ar))
	if err != nil {
		s.t.Fatal(err)
	}
	to := &target.Target{Client: s.in, Owner: apply.Owner{Labels: by.AccessLabels(ar), Origin: by.Origin(ar, s.cluster)}}
	have, err := to.Cleanup(s.t.Context(), wanted.Objects)
	if err == nil {
		err = to.ApplyRights(s.t.Context(), wanted, have)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// objects returns the objects in the cluster, with the UIDs of their requests.
func (s *swept) objects() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, kind := range rights.Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := s.in.List(s.t.Context(), list); err != nil {
			s.t.Fatal(err)
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			all[apply.IDOf(&object).String()] = object.Annotations["e.p.clusters.openmcp.cloud/accessrequest-uid"]
		}
	}
	return all
}

func (s *swept) want(objects map[string]string) {
	s.t.Helper()
	if got := s.objects(); !maps.Equal(got, objects) {
		s.t.Errorf("in the cluster is\n%v\nnot\n%v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(objects)))
	}
}

// anotherHub returns a Cluster of the same name on a hub without requests.
func (s *swept) anotherHub() *v1alpha1.Cluster {
	s.t.Helper()
	other := s.cluster.DeepCopy()
	other.UID, other.ResourceVersion = "blue-2", ""
	if err := errors.Join(s.client.Delete(s.t.Context(), s.cluster.DeepCopy()), s.client.Create(s.t.Context(), other)); err != nil {
		s.t.Fatal(err)
	}
	return other
}

// Forget removes an annotation from all objects in the cluster.
func (s *swept) forget(annotation string) {
	s.t.Helper()
	for _, kind := range rights.Kinds {
		objects, err := s.list(s.t.Context(), s.in, kind)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, object := range objects {
			object.SetGroupVersionKind(kind)
			before := object.DeepCopy()
			delete(object.Annotations, s.Group()+"/"+annotation)
			if err := s.in.Patch(s.t.Context(), &object, client.MergeFrom(before)); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
