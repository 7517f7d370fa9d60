// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest has helpers for the tests of the registries: the storage of a real server, and writes like those of the request handlers.
package registrytest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	edgeinstall "github.com/clusterhub/clusterhub/pkg/apis/edge/install"
	openmcpinstall "github.com/clusterhub/clusterhub/pkg/apis/openmcp/install"
	workinstall "github.com/clusterhub/clusterhub/pkg/apis/work/install"
)

// Scheme returns the kinds that are stored for users.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	edgeinstall.Install(scheme)
	openmcpinstall.Install(scheme)
	workinstall.Install(scheme)
	return scheme
}

// NewEtcd starts an etcd for a test, and stops it when the test ends.
func NewEtcd(t *testing.T) storagebackend.TransportConfig {
	t.Helper()
	_, config := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	return config.Transport
}

// Options returns the options for storing a resource in an etcd, in a version.
func Options(etcd storagebackend.TransportConfig, scheme *runtime.Scheme, gv schema.GroupVersion, resource string) generic.RESTOptions {
	config := storagebackend.NewDefaultConfig("/registry", serializer.NewCodecFactory(scheme).LegacyCodec(gv))
	config.Transport = etcd
	config.EncodeVersioner = gv
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(gv.WithResource(resource).GroupResource()),
		Decorator:               genericregistry.StorageWithCacher(),
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          resource,
	}
}

// WaitUntilReady waits for the cache of a store.
func WaitUntilReady(t *testing.T, store *genericregistry.Store) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = store.Storage.Storage.ReadinessCheck()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(err, last)
	}
}

// Creater is a storage that objects are created in.
type Creater interface {
	Create(context.Context, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error)
}

// Create creates an object and returns what was stored.
func Create[T runtime.Object](t *testing.T, ctx context.Context, s Creater, object T) T {
	t.Helper()
	created, err := s.Create(ctx, object.DeepCopyObject(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return created.(T)
}

// Update updates an object in a storage and returns what was stored.
func Update[T runtime.Object](ctx context.Context, s rest.Updater, object T) (T, error) {
	name := Meta(object).GetName()
	updated, _, err := s.Update(ctx, name, rest.DefaultUpdatedObjectInfo(object.DeepCopyObject()),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		var none T
		return none, err
	}
	return updated.(T), nil
}

// Meta returns the metadata of an object that has some.
func Meta(object runtime.Object) metav1.Object {
	m, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return m
}

// Spoil changes all metadata that a client can try to change, except for the preconditions of its request.
func Spoil(object runtime.Object) {
	m := Meta(object)
	m.SetLabels(with(m.GetLabels(), "spoilt"))
	m.SetAnnotations(with(m.GetAnnotations(), "spoilt"))
	m.SetFinalizers(append(m.GetFinalizers(), "example.com/spoilt"))
	m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "spoilt", UID: types.UID("spoilt")}})
	m.SetGeneration(99)
	m.SetCreationTimestamp(metav1.Unix(1, 0))
	m.SetDeletionTimestamp(nil)
	m.SetGenerateName("spoilt-")
	m.SetSelfLink("spoilt")
}

func with(labels map[string]string, key string) map[string]string {
	result := maps.Clone(labels)
	if result == nil {
		result = map[string]string{}
	}
	for k := range result {
		result[k] = key
	}
	result[key] = key
	return result
}

// WantSameMeta fails if an update changed any metadata except the version and the fields in exempt.
func WantSameMeta(t *testing.T, updated, old runtime.Object, exempt ...string) {
	t.Helper()
	a, b := fieldsOf(t, updated), fieldsOf(t, old)
	if len(b) == 0 {
		t.Fatal("nothing to compare")
	}
	for key := range merge(a, b) {
		if key == "resourceVersion" || slices.Contains(exempt, key) {
			continue
		}
		if !equality.Semantic.DeepEqual(a[key], b[key]) {
			t.Errorf("metadata.%s became %v, was %v", key, a[key], b[key])
		}
	}
}

func fieldsOf(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.(metav1.ObjectMetaAccessor).GetObjectMeta())
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func merge(a, b map[string]any) map[string]any {
	result := maps.Clone(a)
	maps.Copy(result, b)
	return result
}
