// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// The group and kind of CustomResourceDefinitions.
const definitionGroup, definitionKind = "apiextensions.k8s.io", "CustomResourceDefinition"

// definitions returns the CustomResourceDefinitions of a cluster, as far as every user can find out: a kind that is not Kubernetes' own is served by
// a definition of its name, or by an aggregated API server, which is equivalent. To read other cluster-scoped objects takes a right. unknown reports
// whether an object may exist although it was not found, because its group does not respond, or none does.
func definitions(ctx context.Context, client discovery.DiscoveryInterfaces) (found []edgev1alpha1.ClusterScopedObject, unknown func(edgev1alpha1.ClusterScopedObject) bool, err error) {
	_, lists, err := client.ServerGroupsAndResourcesWithContext(ctx)
	failed := map[string]bool{}
	var some *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &some):
		for version := range some.Groups {
			failed[version.Group] = true
		}
		err = nil // an extension that does not respond is a problem of the cluster
	case err != nil:
		return nil, func(edgev1alpha1.ClusterScopedObject) bool { return true }, err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !extends(version.Group) {
			continue
		}
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !strings.Contains(name, "/") {
				found = append(found, edgev1alpha1.ClusterScopedObject{Group: definitionGroup, Kind: definitionKind, Name: name + "." + version.Group})
			}
		}
	}
	return found, func(o edgev1alpha1.ClusterScopedObject) bool {
		_, group, _ := strings.Cut(o.Name, ".")
		return failed[group]
	}, err
}

// extends reports whether definitions may have this group.
func extends(group string) bool {
	return strings.Contains(group, ".") && !scheme.Scheme.IsGroupRegistered(group) && group != definitionGroup && group != "apiregistration.k8s.io"
}
