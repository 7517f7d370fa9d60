// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// customResourceDefinitions is the resource of CustomResourceDefinitions.
const customResourceDefinitions = "customresourcedefinitions.apiextensions.k8s.io"

var (
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	klusterlets = schema.GroupResource{Group: "operator.open-cluster-management.io", Resource: "klusterlets"}
)

// agentRoles is the prefix of the names of an agent's roles and their bindings in its cluster, in any namespace.
const agentRoles = "clusterhub:hub-agent"

// agentNames are the prefixes of the names of the agent's objects in its namespace.
var agentNames = []string{"hub-agent", "klusterlet-", agentRoles, registration.HubKubeconfigSecret, registration.BootstrapSecret}

// Own are the objects of the agent itself. A work that writes them could take over the identity of the cluster, get rights that no user granted to
// the agent, or make the agent delete objects. So no work may name them, not even to read them.
type Own struct {
	// Namespace is the agent's namespace. All objects in it are the agent's, unless works are limited to this namespace.
	Namespace string
	// Home is a different namespace that has the agent's secrets; empty if there is no such namespace. All objects in it are the agent's.
	Home string
	// Repository is the repository of the images that works may set in the agent's Deployment; empty if works may not set one.
	Repository string
	// Klusterlet is the name of the Klusterlet that the agent belongs to; empty if it belongs to none.
	Klusterlet string
}

// denialReason returns why a work may not have a manifest. If only is not empty, it is the one namespace in which works may have objects. denialReason is called
// before any write.
func (o Own) denialReason(t apply.Target, manifest *unstructured.Unstructured, only string) error {
	if o.isDeployment(t) {
		return o.refuseImage(t, manifest)
	}
	if o.has(t, only) {
		return fmt.Errorf("%s is the agent's own: no work may name it", t)
	}
	if only != "" && t.Namespace != only {
		return fmt.Errorf("%s is not in the namespace %s, which is the only one in which the agent applies objects", t, only)
	}
	return nil
}

// isDeployment reports whether an object is the agent's Deployment.
func (o Own) isDeployment(t apply.Target) bool {
	return t.GroupResource() == deployments && t.Name == registration.AgentDeployment && o.Namespace != "" && t.Namespace == o.Namespace
}

// refuseImage returns why a work may not have a manifest of the agent's Deployment.
func (o Own) refuseImage(t apply.Target, manifest *unstructured.Unstructured) error {
	if o.Repository == "" {
		return fmt.Errorf("%s is the agent's own: no work may name it, "+
			"unless an admin of the cluster lets the hub upgrade the agent (kubectl hub join --upgradable)", t)
	}
	if err := registration.CheckAgentImage(manifest, o.Repository); err != nil {
		return fmt.Errorf("%s is the agent's own: %w", t, err)
	}
	return nil
}

// stays reports whether an object stays when its work is deleted, whatever the work requests: deleting it would delete the agent, and the hub would
// lose the cluster.
func (o Own) stays(t apply.Target) bool {
	return o.isDeployment(t) || o.Klusterlet != "" && t.GroupResource() == klusterlets && t.Name == o.Klusterlet
}

// has reports whether an object is the agent's.
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
	// Works may not name the records and the identity of other agents of the cluster either, in any namespace.
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
