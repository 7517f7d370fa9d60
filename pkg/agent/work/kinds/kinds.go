// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds says which resource a kind is in a cluster where kinds come and go.
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

// RefreshEvery bounds how often the cluster is asked anew for all of its kinds: a work can name one that does not exist.
const RefreshEvery = 5 * time.Second

// Unknown is that a cluster has no such kind, now. The text is upstream's.
type Unknown struct{ Kind schema.GroupVersionKind }

func (e *Unknown) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.Kind.Kind)
}

// Kinds are those of a cluster.
type Kinds struct {
	client discovery.DiscoveryInterface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	now    func() time.Time

	mu        sync.Mutex
	refreshed time.Time
}

// New asks nothing yet.
func New(client discovery.DiscoveryInterface) *Kinds {
	return &Kinds{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), now: time.Now}
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

// Served returns a version in which the cluster served a resource when its kinds were read: the given one, if it did. ok is false if it served
// none, or could not tell: that says nothing about objects, see Live.
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

// Live returns the version in which the cluster serves a resource now: the given one, if it does. It returns "" only if the cluster serves the
// resource in no version, so that none of its objects is there: the list of groups and each version of the group have to have answered. What is
// cached does not count, nor do answers that are not found or empty: those of a proxy, of an aggregated API server that does not answer, and of
// one that is starting.
func (k *Kinds) Live(ctx context.Context, resource schema.GroupVersionResource) (version string, err error) {
	root, versions := "/api", []string{"v1"}
	if resource.Group != "" {
		root = "/apis/" + resource.Group
		if versions, err = k.versions(ctx, resource.Group); err != nil {
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
			failed = errors.Join(failed, fmt.Errorf("asking the cluster for the resources of %s: %w", of, err))
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

// versions returns the versions of a group, and none if the cluster does not have the group.
func (k *Kinds) versions(ctx context.Context, group string) (versions []string, err error) {
	// The discovery client would take a refusal for a list without groups, and leave out versions that do not answer.
	list := &metav1.APIGroupList{}
	err = k.client.RESTClient().Get().AbsPath("/apis").Do(ctx).Into(list)
	if err == nil && len(list.Groups) == 0 {
		err = errors.New("expected groups, got none")
	}
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for its groups: %w", err)
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
