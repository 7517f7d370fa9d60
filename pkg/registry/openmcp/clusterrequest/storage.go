// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterrequest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is clusterrequests and their status over one store.
type Storage struct {
	ClusterRequest *hubgeneric.Storage
	Status         *hubgeneric.SubresourceREST
}

// NewStorage makes the store of clusterrequests.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &openmcp.ClusterRequest{} },
		NewListFunc:               func() runtime.Object { return &openmcp.ClusterRequestList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  openmcp.Resource("clusterrequests"),
		SingularQualifiedResource: openmcp.Resource("clusterrequest"),
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
		ClusterRequest: &hubgeneric.Storage{Store: store, Short: []string{"cr", "creq"}},
		Status:         hubgeneric.NewSubresource(store, statusStrategy{main}),
	}, nil
}
