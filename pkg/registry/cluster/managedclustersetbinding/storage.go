// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersetbinding

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is managedclustersetbindings and their status over one store.
type Storage struct {
	ManagedClusterSetBinding *hubgeneric.Storage
	Status                   *hubgeneric.SubresourceREST
}

// NewStorage makes the store of managedclustersetbindings, which all served versions share.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &cluster.ManagedClusterSetBinding{} },
		NewListFunc:               func() runtime.Object { return &cluster.ManagedClusterSetBindingList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  cluster.Resource("managedclustersetbindings"),
		SingularQualifiedResource: cluster.Resource("managedclustersetbinding"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            tableConvertor,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: getAttrs}); err != nil {
		return nil, err
	}
	return &Storage{
		ManagedClusterSetBinding: &hubgeneric.Storage{Store: store, Short: []string{"mclsetbinding", "mclsetbindings"}},
		Status:                   hubgeneric.NewSubresource(store, statusStrategy{main}),
	}, nil
}
