// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds maps kinds to resources in a cluster whose kinds change.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// RefreshEvery is the minimum interval between two discoveries of all kinds of the cluster: a work can name a kind that does not exist.
const RefreshEvery = 5 * time.Second

// Unknown reports that the cluster does not serve a kind at present. The message is upstream's.
type Unknown struct{ Kind schema.GroupVersionKind }

func (e *Unknown) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.Kind.Kind)
}

// Kinds are the kinds of a cluster.
type Kinds struct {
	client discovery.DiscoveryInterface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	now    func() time.Time

	mu        sync.Mutex
	refreshed time.Time
}

// New returns Kinds that have sent no requests yet.
func New(client discovery.DiscoveryInterface) *Kinds {
	return &Kinds{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), now: time.Now}
}

// Resource returns the resource of a kind, and whether its objects are namespaced. The error is an Unknown if the cluster does not serve the kind.
func (k *Kinds) Resource(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) && k.refresh() {
		mapping, err = k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if meta.IsNoMatchError(err) {
		return resource, false, &Unknown{kind}
	}
	if err != nil {
		return resource, false, fmt.Errorf("discovering the kinds of the cluster: %w", err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Served returns a version in which the cluster served a resource at the last discovery: the given one, if possible. ok is false if the cluster
// served no version, or the discovery failed: that does not mean that the objects are gone, see Live.
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

// Live returns the version in which the cluster serves a resource now: the given one, if possible. It returns "" only if the cluster serves the
// resource in no version, so that none of its objects exists: the requests for the list of groups and for each version of the group must have
// succeeded. Cached responses do not count, nor do responses that are not found or empty: a proxy may send those, as may an aggregated API server
// that does not respond, or one that is starting.
func (k *Kinds) Live(ctx context.Context, resource schema.GroupVersionResource) (version string, err error) {
	root, versions := "/api", []string{"v1"}
	if resource.Group != "" {
		root = "/apis/" + resource.Group
		versions, err = k.versions(ctx, resource.Group)
		if err != nil {
			return "", err
		}
	}
	var failed error
	for _, v := range versions {
		list, of := &metav1.APIResourceList{}, schema.GroupVersion{Group: resource.Group, Version: v}.String()
		err := k.client.RESTClient().Get().AbsPath(root, v).Do(ctx).Into(list)
		if err == nil && (list.GroupVersion != of || len(list.APIResources) == 0) {
			err = fmt.Errorf("expected resources of %s, got %d of %q", of, len(list.APIResources), list.GroupVersion)
		}
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("discovering the resources of %s: %w", of, err))
		case !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }):
		case v == resource.Version:
			return v, nil
		case version == "":
			version = v
		}
	}
	if version != "" {
		return version, nil
	}
	return "", failed
}

// versions returns the versions of a group; none if the cluster does not have the group.
func (k *Kinds) versions(ctx context.Context, group string) (versions []string, err error) {
	// The discovery client would treat a rejected request as a list without groups, and leave out versions that do not respond.
	list := &metav1.APIGroupList{}
	err = k.client.RESTClient().Get().AbsPath("/apis").Do(ctx).Into(list)
	if err == nil && len(list.Groups) == 0 {
		err = errors.New("expected groups, got none")
	}
	if err != nil {
		return nil, fmt.Errorf("discovering the groups of the cluster: %w", err)
	}
	for _, g := range list.Groups {
		if g.Name == group {
			for _, v := range g.Versions {
				versions = append(versions, v.Version)
			}
			if len(versions) == 0 {
				return nil, fmt.Errorf("expected versions of the group %s, got none", group)
			}
		}
	}
	return versions, nil
}

// Changed marks the last discovery as stale, after a known resource was not served.
func (k *Kinds) Changed() { k.refresh() }

// refresh discards the last discovery, unless it is too recent, and reports whether it did.
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
