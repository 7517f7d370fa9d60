// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// customResourceDefinitions is the resource of definitions of kinds.
const customResourceDefinitions = "customresourcedefinitions.apiextensions.k8s.io"

// agentRoles begins the names of the roles of an agent, and of their bindings, on its cluster, in whatever namespace they are.
const agentRoles = "clusterhub:hub-agent"

// agentNames begin the names of what an agent consists of, in its namespace.
var agentNames = []string{"hub-agent", "klusterlet-", agentRoles, registration.HubKubeconfigSecret, registration.BootstrapSecret}

// Own are the objects of the agent itself. With them a work could take the identity of its cluster, or get rights that nobody has given to
// the agent, or tell it what to delete. So no work may name them, not even to read them.
type Own struct {
	// Namespace is the agent's. All in it is the agent's, unless works are for this namespace only.
	Namespace string
	// Home is another namespace that has the agent's secrets, if there is one. All in it is the agent's.
	Home string
}

// refuse says why a work may not name an object, before anything is written.
func (a *Agent) refuse(t apply.Target) error {
	if a.Own.has(t, a.Only) {
		return fmt.Errorf("%s is the agent's own: no work may name it", t)
	}
	if a.Only != "" && t.Namespace != a.Only {
		return fmt.Errorf("%s is not in the namespace %s, which is the only one in which the agent applies objects", t, a.Only)
	}
	return nil
}

// has is whether an object is the agent's.
func (o Own) has(t apply.Target, only string) bool {
	switch resource := t.GroupResource().String(); resource {
	case "appliedmanifestworks." + apply.WorkGroup:
		return true
	case customResourceDefinitions:
		return t.Name == "appliedmanifestworks."+apply.WorkGroup
	case "namespaces":
		return t.Name == o.Namespace || o.Home != "" && t.Name == o.Home
	case "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
		"roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io":
		if strings.HasPrefix(t.Name, agentRoles) {
			return true
		}
	// What another agent of the cluster remembers, and its identity, are not for works either, wherever they are.
	case "configmaps":
		if strings.HasPrefix(t.Name, apply.RecordPrefix) {
			return true
		}
	case "secrets":
		if t.Name == registration.HubKubeconfigSecret {
			return true
		}
	}
	if o.Home != "" && t.Namespace == o.Home {
		return true
	}
	if o.Namespace == "" || t.Namespace != o.Namespace {
		return false
	}
	return only != o.Namespace || slices.ContainsFunc(agentNames, func(name string) bool { return strings.HasPrefix(t.Name, name) })
}
