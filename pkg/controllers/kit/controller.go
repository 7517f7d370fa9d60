// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Controller is what a controller states of itself, in its own folder. The manager needs to know no more of it: it waits until
// what is watched is served, and then sets it up. A test in hack/manifests compares the rights with the roles in artifacts/deploy.
type Controller struct {
	// Name is that in metrics, logs and events.
	Name string
	// Rights are those that it uses: all of them, and no others.
	Rights []Right
	// Setup adds it to a manager.
	Setup func(context.Context, ctrl.Manager) error
}

// Right is one of RBAC. Reads from the cache take list and watch, those from the API server get or list.
type Right struct {
	// GroupVersion has no version if the right is not used but handed on. RBAC has none at all.
	schema.GroupVersion
	// Resource may have a subresource, as in RBAC.
	Resource string
	Verbs    []string
	// Names are those of the objects, if they are known; else it is a right to all.
	Names []string
	// Namespace is where it is used; everywhere, if it is empty.
	Namespace string
	// Component is that of artifacts/deploy which grants it, for those who set a flag; if it is empty, all hubs do.
	Component string
}

// On is the right to do something to all objects of a resource.
func On(version schema.GroupVersion, resource string, verbs ...string) Right {
	return Right{GroupVersion: version, Resource: resource, Verbs: verbs}
}

// Named is the right to objects of these names.
func (r Right) Named(names ...string) Right {
	r.Names = names
	return r
}

// In is the right in one namespace.
func (r Right) In(namespace string) Right {
	r.Namespace = namespace
	return r
}

// By is the right that a component grants.
func (r Right) By(component string) Right {
	r.Component = component
	return r
}

// HandedOn are the rights to write roles with these rules: with RBAC, a process can write only rules that it holds. The
// names are dropped, since those of roles to come are not known.
func HandedOn(rules []rbacv1.PolicyRule) (rights []Right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				rights = append(rights, On(schema.GroupVersion{Group: group}, resource, rule.Verbs...))
			}
		}
	}
	return rights
}
