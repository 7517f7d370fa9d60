// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeployCheck asks what a policy or a pattern would deploy where, and why not elsewhere. It is created and stored nowhere, like a
// SubjectAccessReview: the answer is in the status. It tells only of nodes that the user may get, and takes only services that the user could use.
type DeployCheck struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The namespace is the one that the policy or pattern is in, or would be. A name is not needed.
	metav1.ObjectMeta

	// spec is the question.
	Spec DeployCheckSpec
	// status is the answer.
	Status DeployCheckStatus
}

// DeployCheckSpec is the question. Exactly one of policyName, policy, patternName and pattern is required.
type DeployCheckSpec struct {
	// policyName is a DeploymentPolicy of the namespace, at most 244 characters.
	PolicyName string
	// policy is one that need not be there.
	Policy *DeploymentPolicySpec
	// patternName is a DeploymentPattern of the namespace, at most 244 characters. All nodes are judged as if they had it.
	PatternName string
	// pattern is one that need not be there. All nodes are judged as if they had it.
	Pattern *DeploymentPatternSpec
	// services are taken in the place of those that are there with the same org, url, version and arch, at most 16.
	Services []CheckedService
	// nodes are taken as they are here, whether they are there or not, at most 128.
	Nodes []CheckedNode
	// nodeNames are EdgeNodes that are there, at most 1000. Where nodes and nodeNames are both empty, all nodes are judged that the
	// namespace reaches.
	NodeNames []string
	// limit is the maximum number of nodes in the response, 1 to 1000. 0, the default, means 500. The counts include all nodes.
	Limit int32
	// continue is status.continue of the answer before, with the same question. At most 63 characters.
	Continue string
}

// CheckedService is a service that need not be there.
type CheckedService struct {
	// org is the namespace that the service would be in. The default is the namespace of the check. At most 63 characters.
	Org string
	// spec is the service.
	Spec EdgeServiceSpec
}

// CheckedNode is a node that need not be there.
type CheckedNode struct {
	// name of the node, 1 to 63 characters.
	Name string
	// spec is the node policy.
	Spec EdgeNodeSpec
	// status are the facts.
	Status EdgeNodeStatus
}

// DeployCheckStatus is the answer.
type DeployCheckStatus struct {
	// deployable says whether anything would be deployed to any of the nodes.
	Deployable bool
	// warnings are about the policy or pattern itself, as the hub gives them when it is written. At most 32, of at most 1024 characters.
	Warnings []string
	// selected is how many nodes something would be deployed to.
	Selected int32
	// excluded counts the other nodes, by the first rule that excludes them, at most 32.
	Excluded []ExcludedNodes
	// nodes says it of each node, ordered by name.
	Nodes []NodeVerdict
	// continue is set if there are more nodes: repeat the check with this value. At most 63 characters.
	Continue string
}

// NodeVerdict says what would be deployed to a node.
type NodeVerdict struct {
	// node is the name of it, at most 63 characters.
	Node string
	// deployable says whether all of the policy or pattern would be deployed to it.
	Deployable bool
	// services say it of each service: 1 of a policy, at most 32 of a pattern.
	Services []ServiceVerdict
	// reason is why not, one word: of several services that of the first that does not fit by itself. At most 63 characters.
	Reason string
	// message says it in words, at most 1024 characters.
	Message string
}

// ServiceVerdict says what would be deployed of a service.
type ServiceVerdict struct {
	// name of the service, at most 253 characters.
	Name string
	// org is the namespace of its EdgeServices, at most 63 characters.
	Org string
	// deployable says whether a version would be deployed.
	Deployable bool
	// version that would be deployed, at most 63 characters.
	Version string
	// targetNamespace is where, at most 63 characters.
	TargetNamespace string
	// reason is why not, one word: for several versions that of the one that is tried first. At most 63 characters.
	Reason string
	// message says it in words, of each version that is not deployed. At most 4096 characters.
	Message string
}
