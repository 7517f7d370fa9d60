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
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.deployOption.mode`,description="Where the agent runs. Immutable."
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`,description="The name of the managed cluster on the hub."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`,description="Whether all objects that the agent needs are applied."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the agent runs."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].message`,description="What the agent waits for."
// +kubebuilder:printcolumn:name="Registered As",type=string,priority=1,JSONPath=`.status.clusterhub.clusterName`,description="The name with which the agent has registered the cluster."
// +kubebuilder:printcolumn:name="Ready To Apply",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ReadyToApply")].status`,description="Whether the Secrets exist and lead to the clusters."
// +kubebuilder:printcolumn:name="Hub Degraded",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="HubConnectionDegraded")].status`,description="Whether the agent is unable to work with the hub."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//
// The name is validated only at creation, so that no existing object becomes impossible to update.
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= (self.spec.deployOption.mode == 'Detached' ? 33 : 40)",optionalOldSelf=true,message="metadata.name is too long: at most 40 characters, and at most 33 in the mode Detached, where the namespace of the agent is <name>-open-cluster-management-agent"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must have no dot, since names of Deployments and namespaces are made of it: take a DNS label"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !(self.spec.deployOption.mode in ['Hosted', 'SingletonHosted']) || !(self.metadata.name in ['default', 'open-cluster-management'] || self.metadata.name.startsWith('kube-') || self.metadata.name.startsWith('clusterhub-') || self.metadata.name.endsWith('open-cluster-management-agent') || self.metadata.name.endsWith('open-cluster-management-hub'))",optionalOldSelf=true,message="metadata.name is the namespace of the agent in the modes Hosted and SingletonHosted, and this one belongs to others: take another name, or the mode Detached"
// +kubebuilder:validation:XValidation:rule="has(self.spec.clusterName) == has(oldSelf.spec.clusterName) && (!has(self.spec.clusterName) || self.spec.clusterName == oldSelf.spec.clusterName) || (has(oldSelf.status) && has(oldSelf.status.clusterhub) && has(oldSelf.status.clusterhub.clusterName) && size(oldSelf.status.clusterhub.clusterName) > 0 ? has(self.spec.clusterName) && self.spec.clusterName == oldSelf.status.clusterhub.clusterName : !has(oldSelf.spec.clusterName))",fieldPath=".spec.clusterName",message="clusterName cannot be changed or removed, and a cluster that is registered keeps the name in status.clusterhub.clusterName: for another name, delete the Klusterlet and make a new one"

// Klusterlet defines the agent of one managed cluster, which hub-operator deploys. In the modes Default and Singleton, the agent runs on
// the managed cluster itself. In the modes Detached, Hosted and SingletonHosted, it runs on the cluster that has this object, the
// management cluster, and nothing runs on the managed cluster. The agent connects to the hub with the kubeconfig in the Secret
// bootstrap-hub-kubeconfig, and in the last three modes to the managed cluster with the kubeconfig in the Secret
// external-managed-kubeconfig. The user creates both Secrets in the namespace in which the agent runs: see spec.deployOption.mode.
type Klusterlet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the agent.
	// +optional
	// +kubebuilder:default={deployOption: {mode: Default}}
	Spec KlusterletSpec `json:"spec,omitempty"`

	// status represents the state of the agent as observed by hub-operator.
	Status KlusterletStatus `json:"status,omitempty"`
}

// KlusterletSpec defines the desired state of an agent.
// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : 'open-cluster-management-agent') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : 'open-cluster-management-agent')",fieldPath=".namespace",message="namespace cannot be changed (without one it is open-cluster-management-agent): delete the Klusterlet and make a new one"
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletSpec struct {
	// namespace is the namespace of the agent on the managed cluster: of its pods in the modes Default and Singleton, and of its
	// ServiceAccounts and rights in the modes Hosted and SingletonHosted. In the mode Detached it has no effect. It must begin with
	// open-cluster-management- and have at most 57 characters, because the namespace of add-ons has the same name with the suffix -addon. The
	// default is open-cluster-management-agent. It is immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:validation:Pattern=`^open-cluster-management-[-a-z0-9]*[a-z0-9]$`
	Namespace string `json:"namespace,omitempty"`

	// registrationImagePullSpec is the image of the registration agent. The default is the image of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RegistrationImagePullSpec string `json:"registrationImagePullSpec,omitempty"`

	// workImagePullSpec is the image of the work agent. The default is the image of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WorkImagePullSpec string `json:"workImagePullSpec,omitempty"`

	// imagePullSpec is the image of the agent in the modes Singleton and SingletonHosted. The default is the image of hub-operator's own
	// version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// clusterName is the name of the managed cluster on the hub, a DNS label of at most 63 characters. The default is the UID of the namespace
	// kube-system of the managed cluster. It can be set once. After that it cannot be removed, and can be changed only to the name in
	// status.clusterhub.clusterName.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`

	// externalServerURLs are the https URLs at which users of the hub reach the API server of the managed cluster. The agent reports them to
	// the hub and does not use them itself.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ExternalServerURLs []ServerURL `json:"externalServerURLs,omitempty"`

	// nodePlacement defines the nodes on which the agent's pods may run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitempty"`

	// deployOption defines where the agent runs.
	// +optional
	// +kubebuilder:default={mode: Default}
	DeployOption KlusterletDeployOption `json:"deployOption,omitempty"`

	// registrationConfiguration configures the registration agent.
	// +optional
	RegistrationConfiguration *RegistrationConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration configures the work agent.
	// +optional
	WorkConfiguration *WorkAgentConfiguration `json:"workConfiguration,omitempty"`

	// hubApiServerHostAlias maps one host name to one address in the agent's pods. It is for hubs whose name no DNS server resolves.
	// +optional
	HubApiServerHostAlias *HubApiServerHostAlias `json:"hubApiServerHostAlias,omitempty"`

	// resourceRequirement defines the resource requests and limits of each container of the agent.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`

	// priorityClassName is the name of the PriorityClass of the agent's pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// clusterhub contains the fields that Open Cluster Management does not have. Unknown fields in it are rejected or dropped, as in all kinds
	// of Kubernetes.
	// +optional
	Clusterhub *KlusterletClusterhub `json:"clusterhub,omitempty"`
}

// KlusterletDeployOption defines where an agent runs.
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletDeployOption struct {
	// mode defines where the agent runs, and in how many Deployments. In Default, and in Singleton with a single Deployment, it runs on the
	// managed cluster, which has this object. In Detached, in Hosted, and in SingletonHosted with a single Deployment, it runs on the cluster
	// that has this object, the management cluster. Nothing then runs on the managed cluster, which the agent reaches with the kubeconfig in
	// the Secret external-managed-kubeconfig. The agent and the Secrets are in the namespace <name>-open-cluster-management-agent (Detached)
	// or <name> (Hosted, SingletonHosted) of the management cluster. The default is Default. The mode is immutable: for another one, delete
	// the Klusterlet and create a new one.
	// +optional
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum="";Default;Detached;Hosted;Singleton;SingletonHosted
	// +kubebuilder:validation:XValidation:rule="(self == '' ? 'Default' : self) == (oldSelf == '' ? 'Default' : oldSelf)",message="the mode cannot be changed: delete the Klusterlet and make a new one with the other mode"
	Mode InstallMode `json:"mode"`
}

// KlusterletStatus represents the observed state of an agent.
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions represent the latest observations of the agent's state. The types are ReadyToApply (the Secrets exist and lead to the
	// clusters), Applied (all objects that the agent needs are applied), Available (the agent runs; its message says what the agent waits
	// for), HubConnectionDegraded (the agent is unable to work with the hub), RebootstrapProgressing (an agent with several hubs is choosing
	// one), RegistrationDesiredDegraded and WorkDesiredDegraded (not all pods of a Deployment run), ValidFeatureGates (all feature gates in
	// the spec are known), and FieldsIgnored (the spec has values that have no effect in this mode).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions"`

	// generations are the generations of the Deployments when hub-operator last applied them.
	// +optional
	Generations []GenerationStatus `json:"generations,omitempty"`

	// relatedResources are all objects that hub-operator created for this Klusterlet, on either cluster.
	// +optional
	RelatedResources []RelatedResourceMeta `json:"relatedResources,omitempty"`

	// clusterhub contains the fields that Open Cluster Management does not have.
	// +optional
	Clusterhub *KlusterletClusterhubStatus `json:"clusterhub,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// KlusterletList is a list of Klusterlets.
type KlusterletList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items is the list of Klusterlets.
	Items []Klusterlet `json:"items"`
}
