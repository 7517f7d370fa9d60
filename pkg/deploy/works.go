// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// WorksRights is the name of the binding that gives the agent the rights to what works have: a ClusterRoleBinding, or a RoleBinding in
	// each of some namespaces.
	WorksRights = "clusterhub:hub-agent-works-rights"
	// worksNamespaces is the name of the role, and of its binding, by which works can have namespaces.
	worksNamespaces = "clusterhub:hub-agent-works-namespaces"

	// WorksFlag has the agent bring works.
	WorksFlag = "--works"
	// AgentIDFlag is the flag that AgentID follows: what the agent is called where it remembers works.
	AgentIDFlag = "--agent-id="
)

// AgentID is what the agent of a namespace is called in AppliedManifestWorks. A cluster can have agents of several hubs, each in a
// namespace of its own.
func AgentID(namespace string) string { return namespace }

// Works say what the agent may do with what works have. Without a role it brings no works.
type Works struct {
	// Role is a ClusterRole of the cluster.
	Role string
	// Namespaces are those in which the agent has it. If there are none, it has it in all, and works can have namespaces, too.
	Namespaces []string
}

// in is what becomes of the manifests, in which works have the rights of admin in all namespaces.
func (w Works) in(objects []*unstructured.Unstructured, names map[string]string) (all []*unstructured.Unstructured) {
	called := func(name string) string { return cmp.Or(names[name], name) }
	for _, o := range objects {
		switch name := o.GetName(); {
		case name == called(WorksRights):
			o.Object["roleRef"].(map[string]any)["name"] = w.Role
			if len(w.Namespaces) == 0 {
				all = append(all, o)
			}
			for _, namespace := range w.Namespaces {
				binding := o.DeepCopy()
				binding.SetKind("RoleBinding")
				binding.SetNamespace(namespace)
				all = append(all, binding)
			}
		case name == called(worksNamespaces) && len(w.Namespaces) > 0:
		default:
			all = append(all, o)
		}
	}
	return all
}
