// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contents finds objects in a namespace other than those that every namespace has.
package contents

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ignored are the objects that every namespace has, by resource and name.
var ignored = map[schema.GroupResource]string{
	{Resource: "serviceaccounts"}: "default",
	{Resource: "configmaps"}:      "kube-root-ca.crt",
}

// Contents finds objects in a namespace.
type Contents struct {
	// Binding is the name of a RoleBinding that is not counted, if set. In a namespace of another owner it must count: a binding of any name grants
	// rights.
	Binding   string
	resources func() ([]*metav1.APIResourceList, error)
	objects   metadata.Interface
}

// New returns a Contents that reads with the permissions of the config.
func New(config *rest.Config) (*Contents, error) {
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Contents{resources: resources.ServerPreferredNamespacedResources, objects: objects}, nil
}

// First returns an object in a namespace, or "" if it has only those that every namespace has. It returns an error if it cannot list all types of
// objects.
func (c *Contents) First(ctx context.Context, namespace string) (string, error) {
	lists, err := c.resources()
	if err != nil {
		return "", fmt.Errorf("listing the types of objects of the hub: %w", err)
	}
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, resource := range list.APIResources {
			gvr := groupVersion.WithResource(resource.Name)
			if !stored(gvr, resource.Verbs) {
				continue
			}
			ignore := ignored[gvr.GroupResource()]
			if gvr.Group == rbacv1.GroupName && gvr.Resource == "rolebindings" {
				ignore = c.Binding
			}
			// One more than the ignored object.
			found, err := c.objects.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 2})
			if err != nil {
				return "", err
			}
			for _, object := range found.Items {
				if object.Name != ignore {
					return gvr.GroupResource().String() + " " + object.Name, nil
				}
			}
		}
	}
	return "", nil
}

// stored reports whether a resource has objects for which a namespace should be kept. Objects that cannot be deleted are computed, and events do
// not count.
func stored(gvr schema.GroupVersionResource, verbs []string) bool {
	return slices.Contains(verbs, "list") && slices.Contains(verbs, "delete") && gvr.Resource != "events"
}
