// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember/position"
)

// errNoProgress says why nothing can be read at the latest version.
var errNoProgress = errors.New("etcd has not said yet that it answers progress requests, by which members are read at " +
	"their latest version: it does from 3.4.31 and 3.5.13 on")

// Cache has all members, without regard to visibility. Stored resources have cacher.CacheDelegator, which asks etcd for what
// the cache does not have, and compares the two from time to time. Members are stored nowhere else.
type Cache struct {
	*cacher.Cacher
	destroy func()
}

// New computes the members of a fleet and follows its changes. Connect makes the client of etcd that the fleet is followed
// with, by dialling when nil. The codec encodes members, for the cacher's checks; nothing is stored with it.
func New(fleet *storagebackend.ConfigForResource, connect backend.Connect, codec runtime.Codec, revisions Observer) (*Cache, error) {
	source, destroySource, err := backend.Options{Connect: connect}.NewRaw(fleet, position.FleetPrefix,
		func() runtime.Object { return &cluster.ManagedCluster{} },
		func() runtime.Object { return &cluster.ManagedClusterList{} })
	if err != nil {
		return nil, err
	}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             &members{source: source, revisions: revisions},
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       view.Resource("clustersetmembers"),
		EventsHistoryWindow: fleet.EventsHistoryWindow,
		ResourcePrefix:      position.Root,
		KeyFunc:             position.KeyOf,
		NewFunc:             func() runtime.Object { return &view.ClusterSetMember{} },
		NewListFunc:         func() runtime.Object { return &view.ClusterSetMemberList{} },
		GetAttrsFunc:        position.Attributes,
		IndexerFuncs: storage.IndexerFuncs{"spec.clusterSet": func(obj runtime.Object) string {
			return obj.(*view.ClusterSetMember).Spec.ClusterSet
		}},
		Indexers: &cache.Indexers{storage.FieldIndex("spec.cluster"): func(obj any) ([]string, error) {
			return []string{obj.(*view.ClusterSetMember).Spec.Cluster}, nil
		}},
		Codec: codec,
	})
	if err != nil {
		destroySource()
		return nil, err
	}
	return &Cache{Cacher: cached, destroy: sync.OnceFunc(func() {
		cached.Stop()
		destroySource()
	})}, nil
}

// Destroy ends it.
func (c *Cache) Destroy() { c.destroy() }

// Check says whether members can be read.
func (c *Cache) Check() error {
	if !c.Ready() {
		return errors.New("the members of all cluster sets are being computed")
	}
	if !delegator.ConsistentReadSupported() {
		return errNoProgress
	}
	return nil
}

// GetList lists from the cache, at a version of its history too.
func (c *Cache) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if _, _, err := storage.ValidateListOptions(position.Root, storage.APIObjectVersioner{}, opts); err != nil {
		return err
	}
	answer, err := delegator.ShouldDelegateList(opts, c)
	if err != nil {
		return err
	}
	if answer.ShouldDelegate && answer.ConsistentRead {
		return generic.Unavailable(errNoProgress)
	}
	if answer.ShouldDelegate {
		return apierrors.NewResourceExpired("the requested version of the members is no longer kept: list them anew")
	}
	return c.Cacher.GetList(ctx, key, opts, list)
}
