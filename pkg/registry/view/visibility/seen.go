// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// seen is what a user may see of a derived resource: all that is in the sets of Names and, of a resource that has rows
// (position.Resource.ByName), the objects that byName names.
type seen struct {
	rbac.Names
	byName rbac.Names
}

func (s seen) same(other seen) bool { return s.Equal(other.Names) && s.byName.Equal(other.byName) }

// covers says that nothing of the other is left out. A right by name that takes the place of one by set is taken for a loss: which
// objects are in a set is not known here.
func (s seen) covers(other seen) bool {
	return s.byName.All || s.Includes(other.Names) && s.byName.Includes(other.byName)
}

// ruling is a state of the rules that decide who sees what. names is nil for resources without rows.
type ruling struct{ sets, names *rbac.Snapshot }

// Hash is the digest by which all replicas know the state.
func (r *ruling) Hash() string {
	if r.names == nil {
		return r.sets.Hash()
	}
	return r.sets.Hash() + "." + r.names.Hash()
}

func (r *ruling) seenBy(who user.Info) seen {
	s := seen{Names: r.sets.NamesFor(who)}
	if r.names != nil {
		s.byName = r.names.NamesFor(who)
	}
	return s
}
