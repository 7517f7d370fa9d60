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

// DeployCheck asks what a policy or a pattern would deploy where, and why not elsewhere. It is created and stored nowhere, like a
// SubjectAccessReview: the answer is in the status. It tells only of nodes that the user may get, and takes only services that the user could use.
type DeployCheck struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The namespace is the one that the policy or pattern is in, or would be. A name is not needed.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	Spec DeployCheckSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status DeployCheckStatus `json:"status,omitempty"`
}

// DeployCheckSpec is the question. Exactly one of policyName, policy, patternName and pattern is required.
type DeployCheckSpec struct {
	// policyName is a DeploymentPolicy of the namespace, at most 244 characters.
	// +optional
	PolicyName string `json:"policyName,omitempty"`
	// policy is one that need not be there.
	// +optional
	Policy *DeploymentPolicySpec `json:"policy,omitempty"`
	// patternName is a DeploymentPattern of the namespace, at most 244 characters. All nodes are judged as if they had it.
	// +optional
	PatternName string `json:"patternName,omitempty"`
	// pattern is one that need not be there. All nodes are judged as if they had it.
	// +optional
	Pattern *DeploymentPatternSpec `json:"pattern,omitempty"`
	// services are taken in the place of those that are there with the same org, url, version and arch, at most 16.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	Services []CheckedService `json:"services,omitempty"`
	// nodes are taken as they are here, whether they are there or not, at most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Nodes []CheckedNode `json:"nodes,omitempty"`
	// nodeNames are EdgeNodes that are there, at most 1000. Where nodes and nodeNames are both empty, all nodes are judged that the
	// namespace reaches.
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
	// continue is status.continue of the answer before, with the same question. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Continue string `json:"continue,omitempty"`
}

// CheckedService is a service that need not be there.
type CheckedService struct {
	// org is the namespace that the service would be in. The default is the namespace of the check. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Org string `json:"org,omitempty"`
	// spec is the service.
	Spec EdgeServiceSpec `json:"spec"`
}

// CheckedNode is a node that need not be there.
type CheckedNode struct {
	// name of the node, 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Name string `json:"name"`
	// spec is the node policy.
	// +optional
	Spec EdgeNodeSpec `json:"spec,omitempty"`
	// status are the facts.
	// +optional
	Status EdgeNodeStatus `json:"status,omitempty"`
}

// DeployCheckStatus is the answer.
type DeployCheckStatus struct {
	// deployable says whether anything would be deployed to any of the nodes.
	Deployable bool `json:"deployable"`
	// warnings are about the policy or pattern itself, as the hub gives them when it is written. At most 32, of at most 1024 characters.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
	// selected is how many nodes something would be deployed to.
	Selected int32 `json:"selected"`
	// excluded counts the other nodes, by the first rule that excludes them, at most 32.
	// +optional
	// +listType=map
	// +listMapKey=reason
	Excluded []ExcludedNodes `json:"excluded,omitempty"`
	// nodes says it of each node, ordered by name.
	// +optional
	// +listType=atomic
	Nodes []NodeVerdict `json:"nodes,omitempty"`
	// continue is set if there are more nodes: repeat the check with this value. At most 63 characters.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// NodeVerdict says what would be deployed to a node.
type NodeVerdict struct {
	// node is the name of it, at most 63 characters.
	Node string `json:"node"`
	// deployable says whether all of the policy or pattern would be deployed to it.
	Deployable bool `json:"deployable"`
	// services say it of each service: 1 of a policy, at most 32 of a pattern.
	// +optional
	// +listType=atomic
	Services []ServiceVerdict `json:"services,omitempty"`
	// reason is why not, one word: of several services that of the first that does not fit by itself. At most 63 characters.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it in words, at most 1024 characters.
	// +optional
	Message string `json:"message,omitempty"`
}

// ServiceVerdict says what would be deployed of a service.
type ServiceVerdict struct {
	// name of the service, at most 253 characters.
	Name string `json:"name"`
	// org is the namespace of its EdgeServices, at most 63 characters.
	Org string `json:"org"`
	// deployable says whether a version would be deployed.
	Deployable bool `json:"deployable"`
	// version that would be deployed, at most 63 characters.
	// +optional
	Version string `json:"version,omitempty"`
	// targetNamespace is where, at most 63 characters.
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// reason is why not, one word: for several versions that of the one that is tried first. At most 63 characters.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it in words, of each version that is not deployed. At most 4096 characters.
	// +optional
	Message string `json:"message,omitempty"`
}
