// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// visibleObjects has what a user may see of a derived resource: all objects in the sets of Names and, of a resource that has rows
// (position.Resource.ByName), the objects in byName.
type visibleObjects struct {
	rbac.Names
	byName rbac.Names
}

func (s visibleObjects) same(other visibleObjects) bool {
	return s.Equal(other.Names) && s.byName.Equal(other.byName)
}

// covers reports whether s includes everything of the other. A right by name that replaces one by set counts as a loss: which objects are in a set is
// not known here.
func (s visibleObjects) covers(other visibleObjects) bool {
	return s.byName.All || s.Includes(other.Names) && s.byName.Includes(other.byName)
}

// ruling is a state of the rules that decide who sees what. names is nil for resources without rows.
type ruling struct{ sets, names *rbac.Snapshot }

// Hash returns the digest by which all replicas identify the state.
func (r *ruling) Hash() string {
	if r.names == nil {
		return r.sets.Hash()
	}
	return r.sets.Hash() + "." + r.names.Hash()
}

func (r *ruling) seenBy(who user.Info) visibleObjects {
	s := visibleObjects{Names: r.sets.NamesFor(who)}
	if r.names != nil {
		s.byName = r.names.NamesFor(who)
	}
	return s
}
