// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// WorksRights is the name of the binding that grants the agent the rights to the objects of works: a ClusterRoleBinding, or a RoleBinding in each
	// of some namespaces.
	WorksRights = "clusterhub:hub-agent-works-rights"
	// worksNamespaces is the name of the role, and of its binding, with which works can have namespaces.
	worksNamespaces = "clusterhub:hub-agent-works-namespaces"

	// WorksFlag lets the agent apply works.
	WorksFlag = "--works"
	// AgentIDFlag is the flag for AgentID, the name of the agent in its records of works.
	AgentIDFlag = "--agent-id="
)

// AgentID returns the name of the agent of a namespace in AppliedManifestWorks. A cluster can have agents of several hubs, each in a namespace of its
// own.
func AgentID(namespace string) string { return namespace }

// Works specifies the rights of the agent to the objects of works. Without a role it applies no works.
type Works struct {
	// Role is a ClusterRole of the cluster.
	Role string
	// Namespaces are the namespaces in which the agent has the role. If empty, it has the role in all namespaces, and works can have namespaces, too.
	Namespaces []string
}

// in adapts the manifests, in which works have the rights of admin in all namespaces.
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
