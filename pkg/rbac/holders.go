// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"hash/maphash"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Holder stands for the name of a user or of a group. It is a hash: two of them that fall together are taken for each
// other, which makes a change of the rules concern one too many and never one too few.
type Holder uint64

// Holders knows who holds which role, in any namespace, and so whom a change of the rules concerns. It looks at every
// rule, whatever it grants. Bindings and roles may come in any order. Its methods must not be called concurrently, but
// for Of.
type Holders struct {
	seed     maphash.Seed
	bindings map[objectName]held
	// bound has the bindings to each role. A ClusterRole is in no namespace.
	bound map[objectName]map[objectName]struct{}
}

// objectName is the name of an object. That of an object in no namespace has none.
type objectName struct{ namespace, name string }

// held is what remains of a binding.
type held struct {
	role    objectName
	holders []Holder
}

// NewHolders knows of no rules.
func NewHolders() *Holders {
	return &Holders{
		seed: maphash.MakeSeed(), bindings: map[objectName]held{}, bound: map[objectName]map[objectName]struct{}{},
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

// OfRole returns who holds a Role, or a ClusterRole when there is no namespace: whom a change of the role concerns.
func (h *Holders) OfRole(namespace, name string) []Holder {
	var concerned []Holder
	for binding := range h.bound[objectName{namespace, name}] {
		concerned = append(concerned, h.bindings[binding].holders...)
	}
	return concerned
}

// SetRoleBinding takes a binding that is new or has changed, and returns whom that concerns.
func (h *Holders) SetRoleBinding(object *rbacv1.RoleBinding) []Holder {
	return h.set(objectName{object.Namespace, object.Name}, object.RoleRef, object.Subjects)
}

// SetClusterRoleBinding takes a binding that is new or has changed, and returns whom that concerns.
func (h *Holders) SetClusterRoleBinding(object *rbacv1.ClusterRoleBinding) []Holder {
	return h.set(objectName{name: object.Name}, object.RoleRef, object.Subjects)
}

// DeleteBinding takes the news that a RoleBinding, or a ClusterRoleBinding when there is no namespace, is gone, and
// returns whom that concerns.
func (h *Holders) DeleteBinding(namespace, name string) []Holder {
	return h.put(objectName{namespace, name}, held{})
}

func (h *Holders) set(name objectName, ref rbacv1.RoleRef, subjects []rbacv1.Subject) []Holder {
	binding := held{role: objectName{name: ref.Name}}
	if ref.Kind == "Role" {
		binding.role.namespace = name.namespace
	}
	for _, s := range subjects {
		if who, ok := subjectOf(s, name.namespace); ok {
			binding.holders = append(binding.holders, h.holder(who))
		}
	}
	return h.put(name, binding)
}

func (h *Holders) put(name objectName, next held) []Holder {
	old := h.bindings[name]
	delete(h.bindings, name)
	delete(h.bound[old.role], name)
	if len(h.bound[old.role]) == 0 {
		delete(h.bound, old.role)
	}
	if len(next.holders) > 0 {
		h.bindings[name] = next
		if h.bound[next.role] == nil {
			h.bound[next.role] = map[objectName]struct{}{}
		}
		h.bound[next.role][name] = struct{}{}
	}
	return slices.Concat(old.holders, next.holders)
}
