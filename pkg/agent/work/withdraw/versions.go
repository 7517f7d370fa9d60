// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
)

// maxVersions is the maximum number of versions of a group that are requested.
const maxVersions = 10

// versions finds the versions in which a cluster serves resources. A complete discovery is too much to request from a cluster that is not trusted: it
// could return any number of groups, and any number of kinds in each. So versions requests only the group of a resource, one version after another,
// and caches nothing.
type versions struct{ client rest.Interface }

// otherVersion returns a target in a served version if its own is not served. It returns false if no version is served.
func (v versions) otherVersion(ctx context.Context, t apply.Target) (apply.Target, bool, error) {
	version, err := v.discover(ctx, t.GroupVersionResource)
	if err != nil || version == "" {
		return t, false, err
	}
	t.Version = version
	return t, true, nil
}

// discover returns a different version that has the resource, or "".
func (v versions) discover(ctx context.Context, resource schema.GroupVersionResource) (version string, err error) {
	if resource.Group == "" { // the core group has only one version
		return "", nil
	}
	group := &metav1.APIGroup{}
	if err := v.client.Get().AbsPath("apis", resource.Group).Do(ctx).Into(group); err != nil {
		return "", ignoreNotFound(fmt.Errorf("discovering the versions of group %s: %w", resource.Group, err))
	}
	asked := 0
	for _, served := range group.Versions {
		if served.Version == resource.Version || len(content.IsPathSegmentName(served.Version)) > 0 {
			continue
		}
		asked++
		if asked > maxVersions {
			return "", fmt.Errorf("group %s has more than %d versions besides %s: too many to look for %s in them",
				resource.Group, maxVersions, resource.Version, resource.Resource)
		}
		list := &metav1.APIResourceList{}
		if err := v.client.Get().AbsPath("apis", resource.Group, served.Version).Do(ctx).Into(list); ignoreNotFound(err) != nil {
			return "", fmt.Errorf("discovering the resources of %s/%s: %w", resource.Group, served.Version, err)
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == resource.Resource {
				return served.Version, nil
			}
		}
	}
	return "", nil
}

// serves reports whether the cluster serves a resource in its version.
func (v versions) serves(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	list := &metav1.APIResourceList{}
	err := v.client.Get().AbsPath("apis", resource.Group, resource.Version).Do(ctx).Into(list)
	if ignoreNotFound(err) != nil {
		return false, fmt.Errorf("discovering the resources of %s/%s: %w", resource.Group, resource.Version, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
