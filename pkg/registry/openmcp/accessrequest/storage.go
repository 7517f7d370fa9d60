// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is accessrequests and their status over one store.
type Storage struct {
	AccessRequest *hubgeneric.Storage
	Status        *hubgeneric.SubresourceREST
}

// NewStorage makes the store of accessrequests.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &openmcp.AccessRequest{} },
		NewListFunc:               func() runtime.Object { return &openmcp.AccessRequestList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  openmcp.Resource("accessrequests"),
		SingularQualifiedResource: openmcp.Resource("accessrequest"),
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
		AccessRequest: &hubgeneric.Storage{Store: store, Short: []string{"ar", "areq"}},
		Status:        hubgeneric.NewSubresource(store, statusStrategy{main}),
	}, nil
}
