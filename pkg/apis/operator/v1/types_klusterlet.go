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
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.deployOption.mode`,description="Where the agent runs. It cannot be changed."
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.clusterName`,description="What the managed cluster is called on the hub."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`,description="Whether all that the agent needs is there."
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the agent runs."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].message`,description="What is waited for."
// +kubebuilder:printcolumn:name="Registered As",type=string,priority=1,JSONPath=`.status.clusterhub.clusterName`,description="The name by which the agent has registered the cluster."
// +kubebuilder:printcolumn:name="Ready To Apply",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ReadyToApply")].status`,description="Whether there are secrets by which the clusters can be reached."
// +kubebuilder:printcolumn:name="Hub Degraded",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="HubConnectionDegraded")].status`,description="Whether the agent cannot work with the hub."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//
// A name is checked when the object is made and never again, so that no object can get stuck, whatever made it.
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= (self.spec.deployOption.mode == 'Detached' ? 33 : 40)",optionalOldSelf=true,message="metadata.name is too long: at most 40 characters, and at most 33 in the mode Detached, where the namespace of the agent is <name>-open-cluster-management-agent"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !self.metadata.name.contains('.')",optionalOldSelf=true,message="metadata.name must have no dot, since names of Deployments and namespaces are made of it: take a DNS label"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !(self.spec.deployOption.mode in ['Hosted', 'SingletonHosted']) || !(self.metadata.name in ['default', 'open-cluster-management'] || self.metadata.name.startsWith('kube-') || self.metadata.name.startsWith('clusterhub-') || self.metadata.name.endsWith('open-cluster-management-agent') || self.metadata.name.endsWith('open-cluster-management-hub'))",optionalOldSelf=true,message="metadata.name is the namespace of the agent in the modes Hosted and SingletonHosted, and this one belongs to others: take another name, or the mode Detached"
// +kubebuilder:validation:XValidation:rule="has(self.spec.clusterName) == has(oldSelf.spec.clusterName) && (!has(self.spec.clusterName) || self.spec.clusterName == oldSelf.spec.clusterName) || (has(oldSelf.status) && has(oldSelf.status.clusterhub) && has(oldSelf.status.clusterhub.clusterName) && size(oldSelf.status.clusterhub.clusterName) > 0 ? has(self.spec.clusterName) && self.spec.clusterName == oldSelf.status.clusterhub.clusterName : !has(oldSelf.spec.clusterName))",fieldPath=".spec.clusterName",message="clusterName cannot be changed or removed, and a cluster that is registered keeps the name in status.clusterhub.clusterName: for another name, delete the Klusterlet and make a new one"

// Klusterlet has hub-operator run the agent of one managed cluster. In the modes Default and Singleton the agent runs on the managed
// cluster itself. In Detached, Hosted and SingletonHosted it runs on the cluster that has this object, the management cluster, and the
// managed cluster runs nothing. The agent finds the hub by the secret bootstrap-hub-kubeconfig, and in the last three modes the managed
// cluster by the secret external-managed-kubeconfig. The user puts both into the namespace in which the agent runs: see
// spec.deployOption.mode.
type Klusterlet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +optional
	// +kubebuilder:default={deployOption: {mode: Default}}
	Spec KlusterletSpec `json:"spec,omitempty"`

	// status is the state that hub-operator observes.
	Status KlusterletStatus `json:"status,omitempty"`
}

// KlusterletSpec is the desired state of an agent.
// +kubebuilder:validation:XValidation:rule="(has(self.__namespace__) ? self.__namespace__ : 'open-cluster-management-agent') == (has(oldSelf.__namespace__) ? oldSelf.__namespace__ : 'open-cluster-management-agent')",fieldPath=".namespace",message="namespace cannot be changed (without one it is open-cluster-management-agent): delete the Klusterlet and make a new one"
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletSpec struct {
	// namespace is where the agent is, on the managed cluster: its pods in the modes Default and Singleton, in Hosted and
	// SingletonHosted its ServiceAccounts and rights. In Detached it has no effect. It begins with open-cluster-management- and has at
	// most 57 characters, so that there is room for the namespace of add-ons, which has the suffix -addon. The default is
	// open-cluster-management-agent. It cannot be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:validation:Pattern=`^open-cluster-management-[-a-z0-9]*[a-z0-9]$`
	Namespace string `json:"namespace,omitempty"`

	// registrationImagePullSpec is the image of the registration agent. The default is the one of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RegistrationImagePullSpec string `json:"registrationImagePullSpec,omitempty"`

	// workImagePullSpec is the image of the work agent. The default is the one of hub-operator's own version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WorkImagePullSpec string `json:"workImagePullSpec,omitempty"`

	// imagePullSpec is the image of the agent in the modes Singleton and SingletonHosted. The default is the one of hub-operator's own
	// version.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// clusterName is the name of the managed cluster on the hub, a DNS label of at most 63 characters. The default is the UID of the
	// managed cluster's namespace kube-system. It can be set once. Later it cannot be changed, except to the name in
	// status.clusterhub.clusterName, and it cannot be removed.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`

	// externalServerURLs are the addresses at which users of the hub reach the API server of the managed cluster, https. They are shown on
	// the hub. The agent does not use them.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ExternalServerURLs []ServerURL `json:"externalServerURLs,omitempty"`

	// nodePlacement says on which nodes the agent's pods run.
	// +optional
	NodePlacement NodePlacement `json:"nodePlacement,omitempty"`

	// deployOption says where the agent runs.
	// +optional
	// +kubebuilder:default={mode: Default}
	DeployOption KlusterletDeployOption `json:"deployOption,omitempty"`

	// registrationConfiguration is for the registration agent.
	// +optional
	RegistrationConfiguration *RegistrationConfiguration `json:"registrationConfiguration,omitempty"`

	// workConfiguration is for the work agent.
	// +optional
	WorkConfiguration *WorkAgentConfiguration `json:"workConfiguration,omitempty"`

	// hubApiServerHostAlias has the agent's pods resolve one host name to one address, where no DNS server knows the hub.
	// +optional
	HubApiServerHostAlias *HubApiServerHostAlias `json:"hubApiServerHostAlias,omitempty"`

	// resourceRequirement is the requests and limits of each container of the agent.
	// +optional
	ResourceRequirement *ResourceRequirement `json:"resourceRequirement,omitempty"`

	// priorityClassName is the PriorityClass of the agent's pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// clusterhub has the fields that Open Cluster Management does not have. Fields that are not known are refused or dropped in here, as in
	// all kinds of Kubernetes.
	// +optional
	Clusterhub *KlusterletClusterhub `json:"clusterhub,omitempty"`
}

// KlusterletDeployOption says where an agent runs.
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletDeployOption struct {
	// mode says where the agent runs, and in how many Deployments. Default, and Singleton with only one Deployment: on the managed
	// cluster, which has this object. Detached, Hosted, and SingletonHosted with only one Deployment: on the cluster that has this
	// object, the management cluster. The managed cluster then runs nothing, and is reached by the secret external-managed-kubeconfig.
	// The agent and the secrets are in the namespace <name>-open-cluster-management-agent (Detached) or <name> (Hosted,
	// SingletonHosted) of the management cluster. The default is Default. It cannot be changed: delete the Klusterlet and make a new one.
	// +optional
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum="";Default;Detached;Hosted;Singleton;SingletonHosted
	// +kubebuilder:validation:XValidation:rule="(self == '' ? 'Default' : self) == (oldSelf == '' ? 'Default' : oldSelf)",message="the mode cannot be changed: delete the Klusterlet and make a new one with the other mode"
	Mode InstallMode `json:"mode"`
}

// KlusterletStatus is the observed state of an agent.
// +kubebuilder:pruning:PreserveUnknownFields
type KlusterletStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are: ReadyToApply (the secrets are there and lead to the clusters), Applied (all that the agent needs is there),
	// Available (the agent runs; its message says what is waited for), HubConnectionDegraded (the agent cannot work with the hub),
	// RegistrationDesiredDegraded and WorkDesiredDegraded (not all pods of a Deployment run), ValidFeatureGates (all named feature
	// gates are known), and FieldsIgnored (the spec has something that has no effect in this mode).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions"`

	// generations are those of the Deployments, as they were applied.
	// +optional
	Generations []GenerationStatus `json:"generations,omitempty"`

	// relatedResources are all objects that hub-operator made for this Klusterlet, on either cluster.
	// +optional
	RelatedResources []RelatedResourceMeta `json:"relatedResources,omitempty"`

	// clusterhub has the fields that Open Cluster Management does not have.
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

	// items are the Klusterlets.
	Items []Klusterlet `json:"items"`
}
