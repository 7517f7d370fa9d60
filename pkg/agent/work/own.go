// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
)

// agentRoles begins the names of the roles of an agent, and of their bindings, on its cluster, in whatever namespace they are.
const agentRoles = "clusterhub:hub-agent"

// Own are the objects of the agent itself. With them a work could take the identity of its cluster, or get rights that nobody has given to
// the agent, or tell it what to delete. So no work may name them, not even to read them.
type Own struct {
	// Namespace is the agent's. All in it is the agent's.
	Namespace string
}

// refuse says why a work may not name an object.
func (o Own) refuse(t apply.Target) error {
	own := false
	switch resource := t.GroupResource().String(); resource {
	case "appliedmanifestworks." + apply.WorkGroup:
		own = true
	case "customresourcedefinitions.apiextensions.k8s.io":
		own = t.Name == "appliedmanifestworks."+apply.WorkGroup
	case "namespaces":
		own = t.Name == o.Namespace
	case "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io":
		own = strings.HasPrefix(t.Name, agentRoles)
	}
	if own || t.Namespace == o.Namespace && o.Namespace != "" {
		return fmt.Errorf("%s is the agent's own: no work may name it", t)
	}
	return nil
}
