// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeNode is a target of deployments: a cluster, or one namespace of a cluster. It has the name of the ManagedCluster that its agent
// registers. Users write the spec, which is the node policy; the agent of the node alone writes the status. The hub derives these
// properties from the status, and no spec can set them: openhorizon.arch, openhorizon.cpu, openhorizon.memory,
// openhorizon.kubernetesVersion, openhorizon.kubernetesNamespace and openhorizon.kubernetesNamespaceScoped.
type EdgeNode struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is the name of the ManagedCluster, a DNS label of 1 to 63 characters.
	metav1.ObjectMeta

	// spec is the node policy: what the node is for, and what it requires of what is deployed to it. Users write it who may update
	// the edgenode, by its name or by a set.
	Spec EdgeNodeSpec
	// status are the facts of the node. Its own agent writes them.
	Status EdgeNodeStatus
}

// EdgeNodeSpec is the policy of a node.
type EdgeNodeSpec struct {
	// nodeType is cluster (the default) or device. Nothing is delivered to devices: rules and checks alone know them, and ignore namespaces
	// there.
	NodeType NodeType
	// pattern is the DeploymentPattern that the node has, written <namespace>/<name>. A node with a pattern gets the services of the
	// pattern, and none of a DeploymentPolicy. By default a node has no pattern. The hub gives a pattern only to nodes of the sets that are
	// bound to its namespace.
	Pattern string
	// label is a short text for people, at most 253 characters.
	Label string
	// description is a text for people, at most 4096 characters.
	Description string
	Policy
	// deployment changes properties and constraints for deployments. Its properties replace those above that have the same name. Its
	// constraints replace all those above, if it has any.
	Deployment *Policy
	// management changes properties and constraints for the management of the node, in the same way. The hub keeps it, and decides
	// nothing by it.
	Management *Policy
}

// NodeType says what a node is.
type NodeType string

const (
	// NodeTypeCluster is a Kubernetes cluster, or a namespace of one.
	NodeTypeCluster NodeType = "cluster"
	// NodeTypeDevice is a machine with containers and without Kubernetes.
	NodeTypeDevice NodeType = "device"
)

// EdgeNodeStatus are the facts of a node, as its agent sees them. What the agent cannot see is left out: it is unknown, and every
// constraint on it is false. It is never 0 or empty text.
type EdgeNodeStatus struct {
	// arch is the architecture of most nodes of the cluster, as GOARCH has it, such as amd64. At most 63 characters. An agent that may not
	// see nodes says its own.
	Arch string
	// cpu is the number of CPUs of the cluster, 1 or more.
	CPU *int64
	// memory is the memory of the cluster in MB (1048576 bytes), 1 or more.
	Memory *int64
	// kubernetesVersion is the version of the cluster as its API server says it, such as v1.33.3. At most 253 characters.
	KubernetesVersion string
	// namespace is the namespace of services by default, a DNS label of 1 to 63 characters: the agent's own if the node is
	// namespace-scoped, else a different one, openhorizon-agent unless a flag of the agent sets another one.
	Namespace string
	// namespaceScoped is true for an agent that deploys to its own namespace alone, false for one that deploys to any namespace.
	// As long as it is not known, nothing is deployed.
	NamespaceScoped *bool
	// clusterID tells clusters apart: agents of one cluster report the same. At most 253 characters. By it the hub finds that two agents
	// would put the same into one namespace.
	ClusterID string
	// clusterObjects are objects in no namespace that are in the cluster, as far as the agent knows, at most 256: an agent that has a
	// namespace alone can deploy services that have such objects only where they are there already.
	ClusterObjects []ClusterScopedObject
	// reportTime is when the agent wrote the facts.
	ReportTime *metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeNodeList is a list of EdgeNode.
type EdgeNodeList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the nodes.
	Items []EdgeNode
}
