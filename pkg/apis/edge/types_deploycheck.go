// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeployCheck determines which nodes a policy or a pattern would deploy to, and why not to others. Like a SubjectAccessReview, it is
// created and not stored: the response contains the result in the status. The result contains only nodes that the user may get, and only
// services that the user may use.
type DeployCheck struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The namespace is the one that contains, or would contain, the policy or pattern. The name is
	// optional.
	metav1.ObjectMeta

	// spec is the request.
	Spec DeployCheckSpec
	// status is the result. The server sets it.
	Status DeployCheckStatus
}

// DeployCheckSpec is the request. Exactly one of policyName, policy, patternName and pattern is required.
type DeployCheckSpec struct {
	// policyName is the name of a DeploymentPolicy in the namespace, at most 244 characters.
	PolicyName string
	// policy is the spec of a DeploymentPolicy that need not exist.
	Policy *DeploymentPolicySpec
	// patternName is the name of a DeploymentPattern in the namespace, at most 244 characters. Every node is checked as if it had the pattern.
	PatternName string
	// pattern is the spec of a DeploymentPattern that need not exist. Every node is checked as if it had the pattern.
	Pattern *DeploymentPatternSpec
	// services replace existing services with the same org, url, version and arch, and need not exist. At most 16.
	Services []CheckedService
	// nodes are nodes to check with the policies and facts given here, whether or not they exist. At most 128.
	Nodes []CheckedNode
	// nodeNames are the names of existing EdgeNodes, at most 1000. If both nodes and nodeNames are empty, all nodes that the namespace reaches
	// are checked.
	NodeNames []string
	// limit is the maximum number of nodes in the response, 1 to 1000. 0, the default, means 500. The counts include all nodes.
	Limit int32
	// continue is status.continue of the previous response to the same request. At most 63 characters.
	Continue string
}

// CheckedService is a service that need not exist.
type CheckedService struct {
	// org is the namespace of the service. The default is the namespace of the check. At most 63 characters.
	Org string
	// spec is the spec of the EdgeService.
	Spec EdgeServiceSpec
}

// CheckedNode is a node that need not exist.
type CheckedNode struct {
	// name is the name of the node, 1 to 63 characters.
	Name string
	// spec is the spec of the EdgeNode, which is the node policy.
	Spec EdgeNodeSpec
	// status is the status of the EdgeNode, which contains the facts.
	Status EdgeNodeStatus
}

// DeployCheckStatus is the result of a check.
type DeployCheckStatus struct {
	// deployable is true if something would be deployed to at least one node.
	Deployable bool
	// warnings are the warnings about the policy or pattern itself that the hub returns when it is written. At most 32, each of at most 1024
	// characters.
	Warnings []string
	// selected is the number of nodes to which something would be deployed.
	Selected int32
	// excluded counts the other nodes by the first rule that excludes them, at most 32 rules.
	Excluded []ExcludedNodes
	// nodes contains the result for each node, ordered by name.
	Nodes []NodeVerdict
	// continue is set if there are more nodes: repeat the check with this value in spec.continue. At most 63 characters.
	Continue string
}

// NodeVerdict is the result of a check for one node.
type NodeVerdict struct {
	// node is the name of the node, at most 63 characters.
	Node string
	// deployable is true if the whole policy or pattern would be deployed to the node.
	Deployable bool
	// services contains the result for each service: 1 for a policy, at most 32 for a pattern.
	Services []ServiceVerdict
	// reason is a CamelCase word for why the node is excluded. With several services, it is the reason of the first that cannot be deployed on
	// its own. At most 63 characters.
	Reason string
	// message is a human-readable description of the reason, at most 1024 characters.
	Message string
}

// ServiceVerdict is the result of a check for one service on one node.
type ServiceVerdict struct {
	// name is the name of the service, at most 253 characters.
	Name string
	// org is the namespace of its EdgeServices, at most 63 characters.
	Org string
	// deployable is true if a version of the service would be deployed.
	Deployable bool
	// version is the version that would be deployed, at most 63 characters.
	Version string
	// targetNamespace is the namespace to which the service would be deployed, at most 63 characters.
	TargetNamespace string
	// reason is a CamelCase word for why no version would be deployed. With several versions, it is the reason of the one that is tried first.
	// At most 63 characters.
	Reason string
	// message is a human-readable description for each version that would not be deployed. At most 4096 characters.
	Message string
}
