// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclusterset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is managedclustersets and their status over one store.
type Storage struct {
	ManagedClusterSet *hubgeneric.Storage
	Status            *hubgeneric.SubresourceREST
}

// NewStorage makes the store of managedclustersets, which all served versions share.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &cluster.ManagedClusterSet{} },
		NewListFunc:               func() runtime.Object { return &cluster.ManagedClusterSetList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  cluster.Resource("managedclustersets"),
		SingularQualifiedResource: cluster.Resource("managedclusterset"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            tableConvertor,
	}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		return checkDryRun(ctx, store, obj, options.DryRun)
	}
	store.BeginUpdate = func(ctx context.Context, obj, _ runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
		return checkDryRun(ctx, store, obj, options.DryRun)
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: getAttrs}); err != nil {
		return nil, err
	}
	return &Storage{
		ManagedClusterSet: &hubgeneric.Storage{Store: store, Short: []string{"mclset", "mclsets"}},
		Status:            hubgeneric.NewSubresource(store, statusStrategy{main}),
	}, nil
}
