// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeNode is a target of deployments: a cluster, or one namespace of a cluster. It has the name of the ManagedCluster that its agent
// registers. Users write the spec, which is the node policy. Only the agent of the node writes the status. The hub derives these properties
// from the status, and no spec can set them: openhorizon.arch, openhorizon.cpu, openhorizon.memory, openhorizon.kubernetesVersion,
// openhorizon.kubernetesNamespace and openhorizon.kubernetesNamespaceScoped.
type EdgeNode struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the ManagedCluster, a DNS label of 1 to 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the node policy: the properties of the node, and its constraints on services. Users who may update the edgenode, by its name or
	// by a set, write it.
	// +optional
	Spec EdgeNodeSpec `json:"spec,omitempty"`
	// status contains the facts of the node. Its own agent writes it.
	// +optional
	Status EdgeNodeStatus `json:"status,omitempty"`
}

// EdgeNodeSpec is the policy of a node.
type EdgeNodeSpec struct {
	// nodeType is cluster (the default) or device. Nothing is delivered to devices: only rules and checks support them, and ignore namespaces
	// for them.
	// +optional
	// +default="cluster"
	// +k8s:validation:maxLength=16
	NodeType NodeType `json:"nodeType,omitempty"`
	// pattern is the DeploymentPattern of the node, as <namespace>/<name>. A node with a pattern gets the services of the pattern, and none of
	// a DeploymentPolicy. By default, a node has no pattern. A pattern applies only to nodes of the sets that are bound to its namespace.
	// +optional
	// +k8s:validation:maxLength=317
	Pattern string `json:"pattern,omitempty"`
	// label is a short human-readable name, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a human-readable description, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	Policy      `json:",inline"`
	// deployment overrides properties and constraints for deployments. Its properties replace the properties above with the same names. If it
	// has constraints, they replace all constraints above.
	// +optional
	Deployment *Policy `json:"deployment,omitempty"`
	// management overrides properties and constraints for the management of the node, in the same way. The hub stores it and does not use it.
	// +optional
	Management *Policy `json:"management,omitempty"`
}

// NodeType is the type of a node.
type NodeType string

const (
	// NodeTypeCluster is a Kubernetes cluster, or a namespace of a cluster.
	NodeTypeCluster NodeType = "cluster"
	// NodeTypeDevice is a machine that runs containers without Kubernetes.
	NodeTypeDevice NodeType = "device"
)

// EdgeNodeStatus contains the facts of a node as observed by its agent. A fact that the agent cannot observe is omitted, and is never 0 or
// empty: it is unknown, and every constraint on it is false.
type EdgeNodeStatus struct {
	// arch is the architecture of most nodes of the cluster as in GOARCH, such as amd64. At most 63 characters. An agent that may not list
	// nodes reports its own architecture.
	// +optional
	// +k8s:validation:maxLength=63
	Arch string `json:"arch,omitempty"`
	// cpu is the number of CPUs of the cluster, 1 to 1048576.
	// +optional
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=1048576
	CPU *int64 `json:"cpu,omitempty"`
	// memory is the memory of the cluster in MB (1048576 bytes), 1 to 1099511627776.
	// +optional
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=1099511627776
	Memory *int64 `json:"memory,omitempty"`
	// kubernetesVersion is the version that the API server of the cluster reports, such as v1.33.3. At most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// namespace is the default namespace of services, a DNS label of 1 to 63 characters. If the node is namespace-scoped, it is the namespace
	// of the agent; otherwise it is a different one, openhorizon-agent unless a flag of the agent sets another one.
	// +optional
	// +k8s:validation:maxLength=63
	Namespace string `json:"namespace,omitempty"`
	// namespaceScoped is true for an agent that deploys only to its own namespace, and false for an agent that deploys to any namespace. While
	// it is unknown, nothing is deployed.
	// +optional
	NamespaceScoped *bool `json:"namespaceScoped,omitempty"`
	// clusterID identifies the cluster: all agents of a cluster report the same. At most 253 characters. With it, the hub detects that two
	// agents would deploy the same objects to one namespace.
	// +optional
	// +k8s:validation:maxLength=253
	ClusterID string `json:"clusterID,omitempty"`
	// clusterObjects are the cluster-scoped objects that exist in the cluster, as far as the agent knows, at most 256. A namespace-scoped
	// agent can deploy services with such objects only if the objects already exist.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	ClusterObjects []ClusterScopedObject `json:"clusterObjects,omitempty"`
	// reportTime is the time at which the agent wrote the facts.
	// +optional
	ReportTime *metav1.Time `json:"reportTime,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EdgeNodeList is a list of EdgeNodes.
type EdgeNodeList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items is the list of EdgeNodes.
	Items []EdgeNode `json:"items"`
}
