// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is clusters and their status over one store.
type Storage struct {
	Cluster *hubgeneric.Storage
	Status  *hubgeneric.SubresourceREST
}

// NewStorage makes the store of clusters.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &openmcp.Cluster{} },
		NewListFunc:               func() runtime.Object { return &openmcp.ClusterList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  openmcp.Resource("clusters"),
		SingularQualifiedResource: openmcp.Resource("cluster"),
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
		Cluster: &hubgeneric.Storage{Store: store},
		Status:  hubgeneric.NewSubresource(store, statusStrategy{main}),
	}, nil
}
