// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Storage is managedclusters and its subresources over one store.
type Storage struct {
	ManagedCluster *hubgeneric.Storage
	Status         *hubgeneric.SubresourceREST
	Label          *hubgeneric.SubresourceREST
	Accept         *hubgeneric.SubresourceREST
}

// NewStorage makes the store of managedclusters. It indexes the label that puts a cluster into an exclusive set,
// by which upstream's clients list a set, and acceptance, by which admission counts the clusters that wait for it.
func NewStorage(scheme *runtime.Scheme, optsGetter generic.RESTOptionsGetter) (*Storage, error) {
	main := strategy{hubgeneric.NewStrategy(scheme)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &cluster.ManagedCluster{} },
		NewListFunc:               func() runtime.Object { return &cluster.ManagedClusterList{} },
		PredicateFunc:             predicate,
		DefaultQualifiedResource:  cluster.Resource("managedclusters"),
		SingularQualifiedResource: cluster.Resource("managedcluster"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            tableConvertor,
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: optsGetter,
		AttrFunc:    getAttrs,
		Indexers: &cache.Indexers{
			storage.LabelIndex(cluster.ClusterSetLabel): func(obj any) ([]string, error) {
				if value, ok := obj.(*cluster.ManagedCluster).Labels[cluster.ClusterSetLabel]; ok {
					return []string{value}, nil
				}
				return nil, nil
			},
			storage.FieldIndex(acceptsField): func(obj any) ([]string, error) {
				return []string{strconv.FormatBool(obj.(*cluster.ManagedCluster).Spec.HubAcceptsClient)}, nil
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return &Storage{
		ManagedCluster: &hubgeneric.Storage{Store: store, Short: []string{"mcl", "mcls"}},
		Status:         hubgeneric.NewSubresource(store, statusStrategy{main}),
		Label:          hubgeneric.NewSubresource(store, labelStrategy{main}),
		Accept:         hubgeneric.NewSubresource(store, acceptStrategy{main}),
	}, nil
}
