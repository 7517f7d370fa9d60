// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"hash/maphash"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Holder stands for the name of a user or of a group, or for a namespace. It is a hash: two of them that fall together are
// taken for each other, which makes a change of the rules concern one too many and never one too few.
type Holder uint64

// Holders knows whom a change of the rules concerns. It looks at every rule, whatever it grants. Bindings and roles may come
// in any order. Its methods must not be called concurrently, but for Of and Namespace.
//
// A Role or RoleBinding grants nothing outside of its namespace. So a change there concerns all questions about the
// namespace, of all users. To note it costs the same whatever the rule says, and drops no answers about other namespaces.
type Holders struct {
	seed maphash.Seed
	// bindings are the ClusterRoleBindings, and bound has those to each ClusterRole.
	bindings map[string]held
	bound    map[string]map[string]struct{}
	// local has the ClusterRole of each RoleBinding to one, and namespaces how many of them bind it in which namespace.
	local      map[objectName]string
	namespaces map[string]map[string]int
}

// objectName is the name of an object in a namespace.
type objectName struct{ namespace, name string }

// held is what remains of a ClusterRoleBinding.
type held struct {
	role    string
	holders []Holder
}

// NewHolders knows of no rules.
func NewHolders() *Holders {
	return &Holders{
		seed: maphash.MakeSeed(), bindings: map[string]held{}, bound: map[string]map[string]struct{}{},
		local: map[objectName]string{}, namespaces: map[string]map[string]int{},
	}
}

// Of returns what a user holds roles by: the name of the user and those of all groups.
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

// Namespace stands for the rules of one namespace.
func (h *Holders) Namespace(namespace string) Holder {
	return Holder(maphash.Comparable(h.seed, objectName{namespace: namespace}))
}

// OfRole returns whom a change of a Role concerns, or of a ClusterRole when there is no namespace.
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

// SetRoleBinding takes a binding that is new or has changed, and returns whom that concerns.
func (h *Holders) SetRoleBinding(object *rbacv1.RoleBinding) []Holder {
	clusterRole := ""
	if object.RoleRef.Kind != "Role" {
		clusterRole = object.RoleRef.Name
	}
	return h.putLocal(objectName{object.Namespace, object.Name}, clusterRole)
}

// SetClusterRoleBinding takes a binding that is new or has changed, and returns whom that concerns.
func (h *Holders) SetClusterRoleBinding(object *rbacv1.ClusterRoleBinding) []Holder {
	binding := held{role: object.RoleRef.Name}
	for _, s := range object.Subjects {
		if who, ok := subjectOf(s, ""); ok {
			binding.holders = append(binding.holders, h.holder(who))
		}
	}
	return h.put(object.Name, binding)
}

// DeleteBinding takes the news that a RoleBinding, or a ClusterRoleBinding when there is no namespace, is gone, and
// returns whom that concerns.
func (h *Holders) DeleteBinding(namespace, name string) []Holder {
	if namespace != "" {
		return h.putLocal(objectName{namespace, name}, "")
	}
	return h.put(name, held{})
}

// putLocal takes the ClusterRole of a RoleBinding, or none.
func (h *Holders) putLocal(name objectName, clusterRole string) []Holder {
	if old, ok := h.local[name]; ok {
		delete(h.local, name)
		if h.namespaces[old][name.namespace]--; h.namespaces[old][name.namespace] == 0 {
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
