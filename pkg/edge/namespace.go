// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// question holds all that the target namespace depends on. It contains one version of a service, and nothing of any other.
type question struct {
	nodeType         Type
	scope            Scope
	namespace        string // of the agent
	pattern          bool
	clusterNamespace string
	embedded         string
	certain          bool // false: the archive names several namespaces
}

// target returns the target namespace of a service, or why it is not deployed. It is the whole rule.
func (q *question) target() (namespace string, reason Reason, message string) {
	if q.nodeType == Device {
		return "", Fits, ""
	}
	if q.scope != ClusterScoped && q.scope != NamespaceScoped {
		return "", ScopeUnknown, "its agent has not reported whether it has the rights of a namespace or of the cluster"
	}
	scoped := q.scope == NamespaceScoped
	if scoped && q.namespace == "" {
		return "", NamespaceUnknown, "its agent has not reported its namespace"
	}
	if q.pattern {
		if reason, message := q.patternFault(scoped); reason != Fits {
			return "", reason, message
		}
	}
	switch {
	case q.clusterNamespace != "" && scoped && q.clusterNamespace != q.namespace:
		return "", OtherClusterNamespace, fmt.Sprintf("its agent deploys only into its own namespace %s, and clusterNamespace is %s",
			q.namespace, q.clusterNamespace)
	case q.clusterNamespace != "":
		namespace = q.clusterNamespace
	case !q.certain:
		return "", SeveralNamespaces, "the archive of the service names several namespaces: set clusterNamespace"
	case scoped && q.embedded != "" && q.embedded != q.namespace:
		return "", OtherEmbeddedNamespace, fmt.Sprintf("its agent deploys only into its own namespace %s, and the archive of the service names %s: set clusterNamespace",
			q.namespace, q.embedded)
	case q.embedded != "":
		namespace = q.embedded
	case q.namespace == "":
		return "", NamespaceUnknown, "the service goes to the namespace of the agent, and the agent has not reported it"
	default:
		namespace = q.namespace
	}
	if !ValidNamespace(namespace) {
		return "", NamespaceInvalid, fmt.Sprintf("%.70q is not a valid name of a namespace: use small letters, digits and '-', at most 63", namespace)
	}
	return namespace, Fits, ""
}

// patternFault checks what applies to patterns alone.
func (q *question) patternFault(scoped bool) (Reason, string) {
	switch {
	case scoped && q.clusterNamespace == "":
		return PatternWithoutNamespace, fmt.Sprintf("its agent deploys only into its own namespace %s, and then a pattern must name it as clusterNamespace", q.namespace)
	case scoped && q.clusterNamespace != q.namespace:
		return PatternOtherNamespace, fmt.Sprintf("its agent deploys only into its own namespace %s, and clusterNamespace of the pattern is %s", q.namespace, q.clusterNamespace)
	case !scoped && q.clusterNamespace != "":
		return PatternWithNamespace, fmt.Sprintf("its agent has the rights of the cluster, and gets only patterns without clusterNamespace; here it is %s", q.clusterNamespace)
	}
	return Fits, ""
}

// ValidNamespace reports whether a text can be the name of a namespace: a DNS label.
func ValidNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }
