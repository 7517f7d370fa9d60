// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Controller describes a controller, in its own folder. The manager needs nothing else: it waits until the watched resources are served, and then
// sets the controller up. A test in hack/verify/manifests compares the rights with the roles in artifacts/deploy.
type Controller struct {
	// Name is the name in metrics, logs and events.
	Name string
	// Rights are exactly the permissions that it uses.
	Rights []Right
	// Setup adds it to a manager.
	Setup func(context.Context, ctrl.Manager) error
}

// Right is a permission of RBAC. Reads from the cache need list and watch, live reads get or list.
type Right struct {
	// GroupVersion has no version if the permission is not used but granted to others. RBAC has no versions.
	schema.GroupVersion
	// Resource may have a subresource, as in RBAC.
	Resource string
	Verbs    []string
	// Names are the names of the objects, if they are known; otherwise the permission is for all.
	Names []string
	// Namespace limits the permission to a namespace; empty is all.
	Namespace string
	// Component is the component of artifacts/deploy that grants it, for hubs with a certain flag; if it is empty, all hubs have it.
	Component string
}

// On returns the permission for verbs on all objects of a resource.
func On(version schema.GroupVersion, resource string, verbs ...string) Right {
	return Right{GroupVersion: version, Resource: resource, Verbs: verbs}
}

// Named limits the permission to objects of these names.
func (r Right) Named(names ...string) Right {
	r.Names = names
	return r
}

// In limits the permission to one namespace.
func (r Right) In(namespace string) Right {
	r.Namespace = namespace
	return r
}

// By sets the component that grants the permission.
func (r Right) By(component string) Right {
	r.Component = component
	return r
}

// RightsToGrant returns the permissions to write roles with these rules: with RBAC, a process can write only rules that it holds. The names are dropped,
// since those of future roles are not known.
func RightsToGrant(rules []rbacv1.PolicyRule) (rights []Right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				rights = append(rights, On(schema.GroupVersion{Group: group}, resource, rule.Verbs...))
			}
		}
	}
	return rights
}
