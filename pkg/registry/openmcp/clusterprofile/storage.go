// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is clusterprofiles over one store.
type Storage struct {
	ClusterProfile *hubgeneric.Storage
}

// NewStorage makes the store of clusterprofiles.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &openmcp.ClusterProfile{} },
		NewListFunc:               func() runtime.Object { return &openmcp.ClusterProfileList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  openmcp.Resource("clusterprofiles"),
		SingularQualifiedResource: openmcp.Resource("clusterprofile"),
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
		ClusterProfile: &hubgeneric.Storage{Store: store, Short: []string{"cprof", "profile"}},
	}, nil
}
