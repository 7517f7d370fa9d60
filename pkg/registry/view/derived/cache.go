// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/backend"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// errNoProgress reports why nothing can be read at the latest version.
var errNoProgress = errors.New("etcd has not reported yet that it supports progress requests, with which derived objects are read at " +
	"their latest version: it supports them since 3.4.31 and 3.5.13")

// Cache has all objects of a derived resource, independent of their visibility. Stored resources have cacher.CacheDelegator, which reads from etcd
// what the cache does not have, and compares the two from time to time. Derived objects are stored nowhere else.
type Cache struct {
	*cacher.Cacher
	kind    Definition
	destroy func()
}

// New computes the objects of a kind from a fleet, and follows its changes. Connect creates the client of etcd for that; the default is to dial.
func New(kind Definition, fleet *storagebackend.ConfigForResource, connect backend.Connect, revisions Observer) (*Cache, error) {
	config := *fleet
	config.Codec = kind.FleetCodec(fleet.Codec)
	source, destroySource, err := backend.Options{Connect: connect}.NewRaw(&config, position.FleetPrefix,
		func() runtime.Object { return &cluster.ManagedCluster{} },
		func() runtime.Object { return &cluster.ManagedClusterList{} })
	if err != nil {
		return nil, err
	}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             &derivation{kind: kind, source: source, revisions: revisions},
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       kind.GroupResource,
		EventsHistoryWindow: fleet.EventsHistoryWindow,
		ResourcePrefix:      kind.Root(),
		KeyFunc:             kind.KeyOf,
		NewFunc:             func() runtime.Object { return kind.New() },
		NewListFunc:         kind.NewList,
		GetAttrsFunc:        kind.Attributes,
		IndexerFuncs:        kind.Triggers,
		Indexers:            kind.Indexers,
		Codec:               kind.Codec,
	})
	if err != nil {
		destroySource()
		return nil, err
	}
	return &Cache{Cacher: cached, kind: kind, destroy: sync.OnceFunc(func() {
		cached.Stop()
		destroySource()
	})}, nil
}

// Destroy stops the cache.
func (c *Cache) Destroy() { c.destroy() }

// Check returns an error as long as objects cannot be read.
func (c *Cache) Check() error {
	if !c.Ready() {
		return fmt.Errorf("all %s are being computed", c.kind.GroupResource.Resource)
	}
	if !delegator.ConsistentReadSupported() {
		return errNoProgress
	}
	return nil
}

// GetList lists from the cache, including versions of its history.
func (c *Cache) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if _, _, err := storage.ValidateListOptions(c.kind.Root(), storage.APIObjectVersioner{}, opts); err != nil {
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
		return apierrors.NewResourceExpired("the requested version of the " + c.kind.GroupResource.Resource + " is no longer available: list them again")
	}
	return c.Cacher.GetList(ctx, key, opts, list)
}
