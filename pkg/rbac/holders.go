// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"hash/maphash"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Holder represents the name of a user or of a group, or a namespace. It is a hash: two with the same hash are not distinguished, so that a change of
// the rules may affect one too many and never one too few.
type Holder uint64

// Holders determines which users a change of the rules affects. It considers every rule, whatever it grants. Bindings and roles may be set in any
// order. Its methods must not be called concurrently, except for Of and Namespace.
//
// A Role or RoleBinding grants nothing outside of its namespace. So a change there affects all checks for the namespace, of all users. The cost of a
// change does not depend on the rule, and cached results for other namespaces stay valid.
type Holders struct {
	seed maphash.Seed
	// bindings are the ClusterRoleBindings, and bound has the bindings of each ClusterRole.
	bindings map[string]held
	bound    map[string]map[string]struct{}
	// local has the ClusterRole of each RoleBinding to one, and namespaces the number of RoleBindings to it in each namespace.
	local      map[objectName]string
	namespaces map[string]map[string]int
}

// objectName is the name of an object in a namespace.
type objectName struct{ namespace, name string }

// held is the part of a ClusterRoleBinding that is stored.
type held struct {
	role    string
	holders []Holder
}

// NewHolders returns Holders without rules.
func NewHolders() *Holders {
	return &Holders{
		seed: maphash.MakeSeed(), bindings: map[string]held{}, bound: map[string]map[string]struct{}{},
		local: map[objectName]string{}, namespaces: map[string]map[string]int{},
	}
}

// Of returns the holders of a user: the name of the user and those of all groups.
func (h *Holders) Of(who user.Info) []Holder {
	holders := []Holder{h.holder(subject{name: who.GetName()})}
	for _, group := range who.GetGroups() {
		holders = append(holders, h.holder(subject{group: true, name: group}))
	}
	return holders
}

func (h *Holders) holder(who subject) Holder {
	return Holder(maphash.Comparable(h.seed, who))
}

// Namespace returns the holder for the rules of one namespace.
func (h *Holders) Namespace(namespace string) Holder {
	return Holder(maphash.Comparable(h.seed, objectName{namespace: namespace}))
}

// OfRole returns the holders that a change of a Role affects, or of a ClusterRole if namespace is empty.
func (h *Holders) OfRole(namespace, name string) []Holder {
	if namespace != "" {
		return []Holder{h.Namespace(namespace)}
	}
	var concerned []Holder
	for binding := range h.bound[name] {
		concerned = append(concerned, h.bindings[binding].holders...)
	}
	for bindsIt := range h.namespaces[name] {
		concerned = append(concerned, h.Namespace(bindsIt))
	}
	return concerned
}

// SetRoleBinding adds or replaces a binding, and returns the holders that this affects.
func (h *Holders) SetRoleBinding(object *rbacv1.RoleBinding) []Holder {
	clusterRole := ""
	if object.RoleRef.Kind != "Role" {
		clusterRole = object.RoleRef.Name
	}
	return h.putLocal(objectName{object.Namespace, object.Name}, clusterRole)
}

// SetClusterRoleBinding adds or replaces a binding, and returns the holders that this affects.
func (h *Holders) SetClusterRoleBinding(object *rbacv1.ClusterRoleBinding) []Holder {
	binding := held{role: object.RoleRef.Name}
	for _, s := range object.Subjects {
		if who, ok := subjectOf(s, ""); ok {
			binding.holders = append(binding.holders, h.holder(who))
		}
	}
	return h.put(object.Name, binding)
}

// DeleteBinding deletes a RoleBinding, or a ClusterRoleBinding if namespace is empty, and returns the holders that this affects.
func (h *Holders) DeleteBinding(namespace, name string) []Holder {
	if namespace != "" {
		return h.putLocal(objectName{namespace, name}, "")
	}
	return h.put(name, held{})
}

// putLocal sets the ClusterRole of a RoleBinding, or deletes it if that is empty.
func (h *Holders) putLocal(name objectName, clusterRole string) []Holder {
	if old, ok := h.local[name]; ok {
		delete(h.local, name)
		h.namespaces[old][name.namespace]--
		if h.namespaces[old][name.namespace] == 0 {
			delete(h.namespaces[old], name.namespace)
		}
		if len(h.namespaces[old]) == 0 {
			delete(h.namespaces, old)
		}
	}
	if clusterRole != "" {
		h.local[name] = clusterRole
		if h.namespaces[clusterRole] == nil {
			h.namespaces[clusterRole] = map[string]int{}
		}
		h.namespaces[clusterRole][name.namespace]++
	}
	return []Holder{h.Namespace(name.namespace)}
}

func (h *Holders) put(name string, next held) []Holder {
	old := h.bindings[name]
	delete(h.bindings, name)
	delete(h.bound[old.role], name)
	if len(h.bound[old.role]) == 0 {
		delete(h.bound, old.role)
	}
	if len(next.holders) > 0 {
		h.bindings[name] = next
		if h.bound[next.role] == nil {
			h.bound[next.role] = map[string]struct{}{}
		}
		h.bound[next.role][name] = struct{}{}
	}
	return slices.Concat(old.holders, next.holders)
}
