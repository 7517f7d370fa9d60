// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.deployOption.mode`,description="Where the servers run. Immutable."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`,description="Whether all objects of the hub are applied."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the servers run and the hub serves its API."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].message`,description="What the hub waits for."
// +kubebuilder:printcolumn:name="Ready To Apply",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ReadyToApply")].status`,description="Whether the Secret exists and leads to the hub."
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,description="Whether pods are being created or replaced."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//
// The name is validated only at creation, so that no existing object becomes impossible to update.
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= (self.spec.deployOption.mode == 'Detached' ? 35 : 63)",optionalOldSelf=true,message="metadata.name is too long: at most 63 characters, and at most 35 in the mode Detached, where the namespace of the servers is <name>-open-cluster-management-hub"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.deployOption.mode == 'Default' || !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must have no dot in the modes Detached and Hosted, where it is in the name of a namespace: take a DNS label"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.deployOption.mode != 'Hosted' || !(self.metadata.name in ['default', 'open-cluster-management'] || self.metadata.name.startsWith('kube-') || self.metadata.name.startsWith('clusterhub-') || self.metadata.name.endsWith('open-cluster-management-agent') || self.metadata.name.endsWith('open-cluster-management-hub'))",optionalOldSelf=true,message="metadata.name is the namespace of the servers in the mode Hosted, and this one belongs to others: take another name, or the mode Detached"

// ClusterManager defines a hub that hub-operator deploys. In the mode Default, the servers run on the cluster that has this object, and
// that cluster is the hub. In the modes Detached and Hosted, the servers run on the cluster that has this object, the management cluster,
// and the hub is another cluster, which need not have nodes. The servers reach it with the kubeconfig in the Secret
// external-hub-kubeconfig, which the user creates in the namespace of the servers: see spec.deployOption.mode.
type ClusterManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the hub.
	// +kubebuilder:default={deployOption: {mode: Default}}
	Spec ClusterManagerSpec `json:"spec"`

	// status represents the state of the hub as observed by hub-operator.
	// +optional
	Status ClusterManagerStatus `json:"status,omitempty"`
}

// ClusterManagerSpec defines the desired state of a hub.
// +kubebuilder:validation:XValidation:rule="self.deployOption.mode != 'Default' || !has(self.clusterhub) || !has(self.clusterhub.apiServer) || !has(self.clusterhub.apiServer.address)",fieldPath=".clusterhub.apiServer.address",message="the address is for the modes Detached and Hosted: in the mode Default the hub reaches hub-apiserver by its Service, so remove it"
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterManagerSpec struct {
	// registrationImagePullSpec is an image of Open Cluster Management. It has no effect: see clusterhub.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RegistrationImagePullSpec string `json:"registrationImagePullSpec,omitempty"`

	// workImagePullSpec is an image of Open Cluster Management. It has no effect: see clusterhub.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WorkImagePullSpec string `json:"workImagePullSpec,omitempty"`

	// placementImagePullSpec is an image of Open Cluster Management. It has no effect: see clusterhub.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	PlacementImagePullSpec string `json:"placementImagePullSpec,omitempty"`

	// addOnManagerImagePullSpec is an image of Open Cluster Management. It has no effect.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AddOnManagerImagePullSpec string `json:"addOnManagerImagePullSpec,omitempty"`

	// nodePlacement defines the nodes on which the pods of the hub may run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitempty"`

	// deployOption defines where the pods of the hub run.
	// +optional
	// +kubebuilder:default={mode: Default}
	DeployOption ClusterManagerDeployOption `json:"deployOption,omitempty"`

	// registrationConfiguration configures how clusters join the hub and authenticate to it.
	// +optional
	RegistrationConfiguration *RegistrationHubConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration configures how works reach the agents, and the features of works.
	// +optional
	// +kubebuilder:default={workDriver: kube}
	WorkConfiguration *WorkConfiguration `json:"workConfiguration,omitempty"`

	// addOnManagerConfiguration configures Open Cluster Management's add-on manager. It has no effect.
	// +optional
	AddOnManagerConfiguration *AddOnManagerConfiguration `json:"addOnManagerConfiguration,omitempty"`

	// placementConfiguration configures the features of placements.
	// +optional
	PlacementConfiguration *PlacementConfiguration `json:"placementConfiguration,omitempty"`

	// serverConfiguration configures Open Cluster Management's gRPC server. It has no effect.
	// +optional
	ServerConfiguration *ServerConfiguration `json:"serverConfiguration,omitempty"`

	// resourceRequirement defines the resource requests and limits of each container of the hub.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`

	// clusterhub contains the fields that Open Cluster Management does not have. Unknown fields in it are rejected or dropped, as in all kinds
	// of Kubernetes.
	// +optional
	// +kubebuilder:default={}
	Clusterhub *ClusterManagerClusterhub `json:"clusterhub,omitempty"`
}

// ClusterManagerDeployOption defines where the pods of a hub run.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterManagerDeployOption struct {
	// mode defines where the servers run. In Default, they run on the cluster that has this object, which becomes the hub. In Detached and
	// Hosted, they run on the cluster that has this object, the management cluster, and the hub is another cluster, which they reach with the
	// kubeconfig in the Secret external-hub-kubeconfig. The servers and the Secret are in the namespace <name>-open-cluster-management-hub
	// (Detached) or <name> (Hosted) of the management cluster. The default is Default. The mode is immutable: for another one, delete the
	// ClusterManager and create a new one.
	// +required
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum=Default;Detached;Hosted
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the mode cannot be changed: delete the ClusterManager and make a new one with the other mode"
	Mode InstallMode `json:"mode,omitempty"`

	// default configures Open Cluster Management's webhooks. It has no effect.
	// +optional
	Default *DefaultClusterManagerConfiguration `json:"default,omitempty"`

	// hosted configures Open Cluster Management's webhooks. It has no effect: see clusterhub.apiServer.address.
	// +optional
	Hosted *HostedClusterManagerConfiguration `json:"hosted,omitempty"`
}

// ClusterManagerStatus represents the observed state of a hub.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterManagerStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions represent the latest observations of the hub's state. The types are ReadyToApply (the Secret exists and leads to the hub),
	// Applied (all objects of the hub are applied), Available (the servers run and the hub serves its API; its message says what the hub waits
	// for), Progressing (pods are being created or replaced), HubRegistrationDegraded and HubPlacementDegraded (not all pods run),
	// ValidFeatureGates (all feature gates in the spec are known), and FieldsIgnored (the spec has values that have no effect).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions"`

	// generations are the generations of the Deployments when hub-operator last applied them.
	// +optional
	Generations []GenerationStatus `json:"generations,omitempty"`

	// relatedResources are all objects that hub-operator created for this ClusterManager, on either cluster.
	// +optional
	RelatedResources []RelatedResourceMeta `json:"relatedResources,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterManagerList is a list of ClusterManagers.
type ClusterManagerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of ClusterManagers.
	Items []ClusterManager `json:"items"`
}
