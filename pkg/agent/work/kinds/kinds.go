// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds says which resource a kind is in a cluster where kinds come and go.
package kinds

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// RefreshEvery bounds how often the cluster is asked anew for all of its kinds: a work can name one that does not exist.
const RefreshEvery = 5 * time.Second

// Unknown is that a cluster has no such kind, now. The text is upstream's.
type Unknown struct{ Kind schema.GroupVersionKind }

func (e *Unknown) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.Kind.Kind)
}

// Kinds are those of a cluster.
type Kinds struct {
	mapper *restmapper.DeferredDiscoveryRESTMapper
	now    func() time.Time

	mu        sync.Mutex
	refreshed time.Time
}

// New asks nothing yet.
func New(client discovery.DiscoveryInterface) *Kinds {
	return &Kinds{mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), now: time.Now}
}

// Resource is the resource of a kind, and whether its objects are in namespaces. The error is Unknown if there is none.
func (k *Kinds) Resource(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) && k.refresh() {
		mapping, err = k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if meta.IsNoMatchError(err) {
		return resource, false, &Unknown{kind}
	}
	if err != nil {
		return resource, false, fmt.Errorf("asking the cluster for its kinds: %w", err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Served is a version in which the cluster serves a resource: the given one, if it does. ok is false if it serves none, or cannot
// tell.
func (k *Kinds) Served(resource schema.GroupVersionResource) (served schema.GroupVersionResource, ok bool) {
	all, err := k.mapper.ResourcesFor(resource.GroupResource().WithVersion(""))
	if err != nil {
		return resource, false
	}
	for _, served = range all {
		if served == resource {
			return served, true
		}
	}
	return served, len(all) > 0
}

// Changed says that something was not served that is known: what is known is old.
func (k *Kinds) Changed() { k.refresh() }

// refresh says whether what is known was thrown away.
func (k *Kinds) refresh() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.refreshed) >= RefreshEvery {
		k.refreshed = now
		k.mapper.Reset()
		return true
	}
	return false
}
