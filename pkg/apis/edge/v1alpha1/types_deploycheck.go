// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:onlyVerbs=create
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeployCheck determines which nodes a policy or a pattern would deploy to, and why not to others. Like a SubjectAccessReview, it is
// created and not stored: the response contains the result in the status. The result contains only nodes that the user may get, and only
// services that the user may use.
type DeployCheck struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The namespace is the one that contains, or would contain, the policy or pattern. The name is
	// optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request.
	Spec DeployCheckSpec `json:"spec"`
	// status is the result. The server sets it.
	// +optional
	Status DeployCheckStatus `json:"status,omitempty"`
}

// DeployCheckSpec is the request. Exactly one of policyName, policy, patternName and pattern is required.
type DeployCheckSpec struct {
	// policyName is the name of a DeploymentPolicy in the namespace, at most 244 characters.
	// +optional
	// +k8s:validation:maxLength=244
	PolicyName string `json:"policyName,omitempty"`
	// policy is the spec of a DeploymentPolicy that need not exist.
	// +optional
	Policy *DeploymentPolicySpec `json:"policy,omitempty"`
	// patternName is the name of a DeploymentPattern in the namespace, at most 244 characters. Every node is checked as if it had the pattern.
	// +optional
	// +k8s:validation:maxLength=244
	PatternName string `json:"patternName,omitempty"`
	// pattern is the spec of a DeploymentPattern that need not exist. Every node is checked as if it had the pattern.
	// +optional
	Pattern *DeploymentPatternSpec `json:"pattern,omitempty"`
	// services replace existing services with the same org, url, version and arch, and need not exist. At most 16.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	Services []CheckedService `json:"services,omitempty"`
	// nodes are nodes to check with the policies and facts given here, whether or not they exist. At most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Nodes []CheckedNode `json:"nodes,omitempty"`
	// nodeNames are the names of existing EdgeNodes, at most 1000. If both nodes and nodeNames are empty, all nodes that the namespace reaches
	// are checked.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=1000
	// +k8s:validation:items:maxLength=63
	NodeNames []string `json:"nodeNames,omitempty"`
	// limit is the maximum number of nodes in the response, 1 to 1000. 0, the default, means 500. The counts include all nodes.
	// +optional
	// +default=500
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=1000
	Limit int32 `json:"limit,omitempty"`
	// continue is status.continue of the previous response to the same request. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Continue string `json:"continue,omitempty"`
}

// CheckedService is a service that need not exist.
type CheckedService struct {
	// org is the namespace of the service. The default is the namespace of the check. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Org string `json:"org,omitempty"`
	// spec is the spec of the EdgeService.
	Spec EdgeServiceSpec `json:"spec"`
}

// CheckedNode is a node that need not exist.
type CheckedNode struct {
	// name is the name of the node, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Name string `json:"name"`
	// spec is the spec of the EdgeNode, which is the node policy.
	// +optional
	Spec EdgeNodeSpec `json:"spec,omitempty"`
	// status is the status of the EdgeNode, which contains the facts.
	// +optional
	Status EdgeNodeStatus `json:"status,omitempty"`
}

// DeployCheckStatus is the result of a check.
type DeployCheckStatus struct {
	// deployable is true if something would be deployed to at least one node.
	Deployable bool `json:"deployable"`
	// warnings are the warnings about the policy or pattern itself that the hub returns when it is written. At most 32, each of at most 1024
	// characters.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// selected is the number of nodes to which something would be deployed.
	Selected int32 `json:"selected"`
	// excluded counts the other nodes by the first rule that excludes them, at most 32 rules.
	// +optional
	// +listType=map
	// +listMapKey=reason
	Excluded []ExcludedNodes `json:"excluded,omitempty"`
	// nodes contains the result for each node, ordered by name.
	// +optional
	// +listType=atomic
	Nodes []NodeVerdict `json:"nodes,omitempty"`
	// continue is set if there are more nodes: repeat the check with this value in spec.continue. At most 63 characters.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// NodeVerdict is the result of a check for one node.
type NodeVerdict struct {
	// node is the name of the node, at most 63 characters.
	Node string `json:"node"`
	// deployable is true if the whole policy or pattern would be deployed to the node.
	Deployable bool `json:"deployable"`
	// services contains the result for each service: 1 for a policy, at most 32 for a pattern.
	// +optional
	// +listType=atomic
	Services []ServiceVerdict `json:"services,omitempty"`
	// reason is a CamelCase word for why the node is excluded. With several services, it is the reason of the first that cannot be deployed on
	// its own. At most 63 characters.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a human-readable description of the reason, at most 1024 characters.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServiceVerdict is the result of a check for one service on one node.
type ServiceVerdict struct {
	// name is the name of the service, at most 253 characters.
	Name string `json:"name"`
	// org is the namespace of its EdgeServices, at most 63 characters.
	Org string `json:"org"`
	// deployable is true if a version of the service would be deployed.
	Deployable bool `json:"deployable"`
	// version is the version that would be deployed, at most 63 characters.
	// +optional
	Version string `json:"version,omitempty"`
	// targetNamespace is the namespace to which the service would be deployed, at most 63 characters.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// reason is a CamelCase word for why no version would be deployed. With several versions, it is the reason of the one that is tried first.
	// At most 63 characters.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a human-readable description for each version that would not be deployed. At most 4096 characters.
	// +optional
	Message string `json:"message,omitempty"`
}
