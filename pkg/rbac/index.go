// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/third_party/forked/golang/btree"
)

// Index indexes ClusterRoles and ClusterRoleBindings, which may be set in any order. A role that is bound before it exists grants nothing until it
// does. Its methods must not be called concurrently.
//
// Each change reports whether it changed what any subject may reach. Its cost is the number of names that it adds or removes, times the number of
// affected subjects; objects that grant nothing for the attributes are stored, and cost no more than that.
type Index struct {
	attributes Attributes
	bindings   map[string]binding
	roles      map[string]*roleState
	// listing has, for each name, the roles that list it.
	listing  map[string]map[string]struct{}
	subjects map[subject]*subjectState
	// total is the digest of what all subjects may reach.
	total digest

	held     *btree.BTree[holding]
	grants   *btree.BTree[grant]
	snapshot *Snapshot // nil if held or grants have changed since the last one
}

// roleState exists while the role grants something or is bound.
type roleState struct {
	names Names
	// subjects has the number of bindings of the role to each subject.
	subjects map[subject]int
}

// subjectState exists while the subject has a role that grants something.
type subjectState struct {
	// roles are the roles that grant something.
	roles map[string]struct{}
	// all is the number of roles that grant all names.
	all int
	// listed is the digest of the names that the other roles list.
	listed digest
}

// reach returns the digest of what the subject may reach. If that is all names, the listed ones do not matter.
func (s *subjectState) reach(who subject) digest {
	if s.all > 0 {
		return allTerm(who)
	}
	return s.listed
}

// NewIndex returns an empty index: only system:masters may reach anything.
func NewIndex(attributes Attributes) *Index {
	held, grants := newTrees()
	return &Index{
		attributes: attributes,
		bindings:   map[string]binding{},
		roles:      map[string]*roleState{},
		listing:    map[string]map[string]struct{}{},
		subjects:   map[subject]*subjectState{},
		held:       held,
		grants:     grants,
	}
}

// Snapshot returns the current content of the index. Its cost does not depend on the size of the index, and it returns the same Snapshot as long as
// nothing changes.
func (i *Index) Snapshot() *Snapshot {
	if i.snapshot == nil {
		i.snapshot = &Snapshot{held: i.held.Clone(), grants: i.grants.Clone(), hash: i.total.String()}
	}
	return i.snapshot
}

// SetClusterRole adds or replaces a role.
func (i *Index) SetClusterRole(object *rbacv1.ClusterRole) (changed bool) {
	return i.setRole(object.Name, i.attributes.namesOf(object))
}

// DeleteClusterRole deletes a role. The bindings to it stay, and take effect again once it exists again.
func (i *Index) DeleteClusterRole(name string) (changed bool) {
	return i.setRole(name, Names{})
}

// SetClusterRoleBinding adds or replaces a binding. Its role may differ, too: it may have been deleted and created again between two events.
func (i *Index) SetClusterRoleBinding(object *rbacv1.ClusterRoleBinding) (changed bool) {
	return i.setBinding(object.Name, bindingOf(object, i.attributes.counts))
}

// DeleteClusterRoleBinding deletes a binding.
func (i *Index) DeleteClusterRoleBinding(name string) (changed bool) {
	return i.setBinding(name, binding{})
}

func (i *Index) setRole(name string, names Names) bool {
	role := i.roles[name]
	if role == nil {
		role = &roleState{subjects: map[subject]int{}}
	}
	if role.names.Equal(names) {
		return false
	}
	before := i.total
	change := newChange(name, role.names, names)
	role.names = names
	i.list(change)
	for who := range role.subjects {
		i.apply(who, change)
	}
	i.keepRole(name, role)
	return i.total != before
}

func (i *Index) setBinding(name string, next binding) bool {
	before := i.total
	old := i.bindings[name]
	gained, lost := next.subjects, old.subjects
	if old.role == next.role {
		gained, lost = difference(old.subjects, next.subjects, compareSubjects)
	}
	for _, who := range lost {
		i.unbind(who, old.role)
	}
	for _, who := range gained {
		i.bind(who, next.role)
	}
	if len(next.subjects) == 0 {
		delete(i.bindings, name)
	} else {
		i.bindings[name] = next
	}
	return i.total != before
}

func (i *Index) bind(who subject, name string) {
	role := i.roles[name]
	if role == nil {
		role = &roleState{subjects: map[subject]int{}}
	}
	role.subjects[who]++
	if role.subjects[who] == 1 {
		i.apply(who, newChange(name, Names{}, role.names))
	}
	i.keepRole(name, role)
}

func (i *Index) unbind(who subject, name string) {
	role := i.roles[name]
	role.subjects[who]--
	if role.subjects[who] == 0 {
		delete(role.subjects, who)
		i.apply(who, newChange(name, role.names, Names{}))
	}
	i.keepRole(name, role)
}

func (i *Index) keepRole(name string, role *roleState) {
	if role.names.Empty() && len(role.subjects) == 0 {
		delete(i.roles, name)
	} else {
		i.roles[name] = role
	}
}

// grantChange is a change of the names that a role grants.
type grantChange struct {
	role         string
	from, to     Names
	gained, lost []string // of the names listed
}

func newChange(role string, from, to Names) grantChange {
	c := grantChange{role: role, from: from, to: to}
	c.gained, c.lost = difference(from.sorted, to.sorted, cmp.Compare[string])
	return c
}

// list updates the indexes with what the role grants now.
func (i *Index) list(c grantChange) {
	i.snapshot = nil
	if c.to.Empty() {
		i.grants.Delete(grant{role: c.role})
	} else {
		i.grants.ReplaceOrInsert(grant{role: c.role, names: c.to})
	}
	for _, name := range c.lost {
		delete(i.listing[name], c.role)
		if len(i.listing[name]) == 0 {
			delete(i.listing, name)
		}
	}
	for _, name := range c.gained {
		if i.listing[name] == nil {
			i.listing[name] = map[string]struct{}{}
		}
		i.listing[name][c.role] = struct{}{}
	}
}

// apply updates a subject after the change of one role: a role that it has changes, or it gets one (then that changes from nothing for it), or loses
// one (then it changes to nothing).
func (i *Index) apply(who subject, c grantChange) {
	if c.from.Equal(c.to) {
		return
	}
	state := i.subjects[who]
	if state == nil {
		state = &subjectState{roles: map[string]struct{}{}}
		i.subjects[who] = state
	}
	i.total.remove(state.reach(who))
	for _, name := range c.gained {
		if !i.listedElsewhere(state, name, c.role) {
			state.listed.add(nameTerm(who, name))
		}
	}
	for _, name := range c.lost {
		if !i.listedElsewhere(state, name, c.role) {
			state.listed.remove(nameTerm(who, name))
		}
	}
	if c.from.All {
		state.all--
	}
	if c.to.All {
		state.all++
	}
	i.total.add(state.reach(who))

	i.snapshot = nil
	if c.to.Empty() {
		delete(state.roles, c.role)
		i.held.Delete(holding{who, c.role})
	} else if c.from.Empty() {
		state.roles[c.role] = struct{}{}
		i.held.ReplaceOrInsert(holding{who, c.role})
	}
	if len(state.roles) == 0 {
		delete(i.subjects, who)
	}
}

// listedElsewhere reports whether the subject has another role that lists the name. A subject may have many roles and a name may be in many, but
// seldom both: the loop is over the smaller side.
func (i *Index) listedElsewhere(state *subjectState, name, role string) bool {
	few, many := state.roles, i.listing[name]
	if len(many) < len(few) {
		few, many = many, few
	}
	for other := range few {
		if _, both := many[other]; both && other != role {
			return true
		}
	}
	return false
}
