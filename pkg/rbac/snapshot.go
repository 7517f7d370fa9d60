// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/third_party/forked/golang/btree"
)

// Snapshot is the content of an Index at one moment. It never changes: any number of goroutines may read it while the index is updated.
type Snapshot struct {
	held   *btree.BTree[holding]
	grants *btree.BTree[grant]
	hash   string
}

// holding means that a subject is bound to a role, by one binding or by several. Ordered by subject, the roles of a subject are neighbors.
type holding struct {
	who  subject
	role string
}

// grant is the names that a role allows. It is stored separately from the holdings, so that a role that changes is written once, however many
// subjects have it.
type grant struct {
	role  string
	names Names
}

// btreeDegree is the usual choice for in-memory trees in Kubernetes: nodes of 32 to 63 items.
const btreeDegree = 32

// newTrees returns the two trees of a snapshot. Their Clone copies nothing: nodes are copied when one of the two sides writes to them.
func newTrees() (*btree.BTree[holding], *btree.BTree[grant]) {
	held := btree.New(btreeDegree, func(a, b holding) bool {
		return cmp.Or(compareSubjects(a.who, b.who), cmp.Compare(a.role, b.role)) < 0
	})
	grants := btree.New(btreeDegree, func(a, b grant) bool { return a.role < b.role })
	return held, grants
}

// NamesFor returns the names that the user may reach, by the user's own name or as a member of a group. Its cost is the number of granting roles that
// the user has plus the number of names that these list.
func (s *Snapshot) NamesFor(who user.Info) Names {
	if who == nil {
		return Names{}
	}
	// kube-apiserver and the delegated authorizer allow this group everything before RBAC is checked (k8s.io/kubernetes
	// pkg/kubeapiserver/authorizer/reload.go, k8s.io/apiserver pkg/server/options/authorization.go).
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return Names{All: true}
	}
	sets := s.appendGrants(nil, subject{name: who.GetName()})
	for _, group := range who.GetGroups() {
		sets = s.appendGrants(sets, subject{group: true, name: group})
	}
	return union(sets)
}

func (s *Snapshot) appendGrants(sets []Names, who subject) []Names {
	s.held.AscendGreaterOrEqual(holding{who: who}, func(h holding) bool {
		if h.who != who {
			return false
		}
		g, _ := s.grants.Get(grant{role: h.role})
		sets = append(sets, g.names)
		return true
	})
	return sets
}

// Hash identifies the content: two snapshots of the same Attributes have the same hash exactly when every user gets the same names from both,
// whatever the objects that grant them and the order of their events.
func (s *Snapshot) Hash() string { return s.hash }
