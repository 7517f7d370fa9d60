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
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.deployOption.mode`,description="Where the servers run. It cannot be changed."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`,description="Whether all of the hub is there."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the servers run and the hub serves its API."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].message`,description="What is waited for."
// +kubebuilder:printcolumn:name="Ready To Apply",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ReadyToApply")].status`,description="Whether there is a secret by which the hub can be reached."
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`,description="Whether pods are being replaced."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//
// A name is checked when the object is made and never again, so that no object can get stuck, whatever made it.
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= (self.spec.deployOption.mode == 'Detached' ? 35 : 63)",optionalOldSelf=true,message="metadata.name is too long: at most 63 characters, and at most 35 in the mode Detached, where the namespace of the servers is <name>-open-cluster-management-hub"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.deployOption.mode == 'Default' || !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must have no dot in the modes Detached and Hosted, where it is in the name of a namespace: take a DNS label"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.spec.deployOption.mode != 'Hosted' || !(self.metadata.name in ['default', 'open-cluster-management'] || self.metadata.name.startsWith('kube-') || self.metadata.name.startsWith('clusterhub-') || self.metadata.name.endsWith('open-cluster-management-agent') || self.metadata.name.endsWith('open-cluster-management-hub'))",optionalOldSelf=true,message="metadata.name is the namespace of the servers in the mode Hosted, and this one belongs to others: take another name, or the mode Detached"

// ClusterManager has hub-operator make a hub. In the mode Default its servers run on the cluster that has this object, and that cluster is
// the hub. In Detached and Hosted its servers run on the cluster that has this object, the management cluster, and the hub is another
// cluster, which need not have nodes. It is reached by the secret external-hub-kubeconfig, which the user puts into the namespace in
// which the servers run: see spec.deployOption.mode.
type ClusterManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +kubebuilder:default={deployOption: {mode: Default}}
	Spec ClusterManagerSpec `json:"spec"`

	// status is the state that hub-operator observes.
	// +optional
	Status ClusterManagerStatus `json:"status,omitempty"`
}

// ClusterManagerSpec is the desired state of a hub.
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

	// nodePlacement says on which nodes the pods of the hub run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitempty"`

	// deployOption says where the pods of the hub run.
	// +optional
	// +kubebuilder:default={mode: Default}
	DeployOption ClusterManagerDeployOption `json:"deployOption,omitempty"`

	// registrationConfiguration says how clusters join the hub, and by what they prove who they are.
	// +optional
	RegistrationConfiguration *RegistrationHubConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration says how works get to agents, and which features that has.
	// +optional
	// +kubebuilder:default={workDriver: kube}
	WorkConfiguration *WorkConfiguration `json:"workConfiguration,omitempty"`

	// addOnManagerConfiguration is for Open Cluster Management's manager of add-ons. It has no effect.
	// +optional
	AddOnManagerConfiguration *AddOnManagerConfiguration `json:"addOnManagerConfiguration,omitempty"`

	// placementConfiguration says which features the choice of clusters has.
	// +optional
	PlacementConfiguration *PlacementConfiguration `json:"placementConfiguration,omitempty"`

	// serverConfiguration is for Open Cluster Management's gRPC server. It has no effect.
	// +optional
	ServerConfiguration *ServerConfiguration `json:"serverConfiguration,omitempty"`

	// resourceRequirement is the requests and limits of each container of the hub.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`

	// clusterhub has the fields that Open Cluster Management does not have. Fields that are not known are refused or dropped in here, as in
	// all kinds of Kubernetes.
	// +optional
	// +kubebuilder:default={}
	Clusterhub *ClusterManagerClusterhub `json:"clusterhub,omitempty"`
}

// ClusterManagerDeployOption says where the pods of a hub run.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterManagerDeployOption struct {
	// mode says where the servers run. Default: on the cluster that has this object, which becomes the hub. Detached and Hosted: on the
	// cluster that has this object, the management cluster, while the hub is another cluster, which is reached by the secret
	// external-hub-kubeconfig. The servers and the secret are in the namespace <name>-open-cluster-management-hub (Detached) or <name>
	// (Hosted) of the management cluster. The default is Default. It cannot be changed: delete the ClusterManager and make a new one.
	// +required
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum=Default;Detached;Hosted
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the mode cannot be changed: delete the ClusterManager and make a new one with the other mode"
	Mode InstallMode `json:"mode,omitempty"`

	// default is for Open Cluster Management's webhooks. It has no effect.
	// +optional
	Default *DefaultClusterManagerConfiguration `json:"default,omitempty"`

	// hosted is for Open Cluster Management's webhooks. It has no effect: see clusterhub.apiServer.address.
	// +optional
	Hosted *HostedClusterManagerConfiguration `json:"hosted,omitempty"`
}

// ClusterManagerStatus is the observed state of a hub.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterManagerStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are: ReadyToApply (the secret is there and leads to the hub), Applied (all of the hub is there), Available (the servers
	// run and the hub serves its API; its message says what is waited for), Progressing (pods are being replaced),
	// HubRegistrationDegraded and HubPlacementDegraded (not all pods run), ValidFeatureGates (all named feature gates are known), and
	// FieldsIgnored (the spec has something that has no effect).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions"`

	// generations are those of the Deployments, as they were applied.
	// +optional
	Generations []GenerationStatus `json:"generations,omitempty"`

	// relatedResources are all objects that hub-operator made for this ClusterManager, on either cluster.
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

	// items are the ClusterManagers.
	Items []ClusterManager `json:"items"`
}
