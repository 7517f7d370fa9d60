// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// InstallMode says where the pods of a hub or an agent run.
type InstallMode string

const (
	// InstallModeDefault is on the cluster that is the hub, or the managed cluster.
	InstallModeDefault InstallMode = "Default"
	// InstallModeDetached is on the management cluster, in a namespace whose name begins with that of the object.
	InstallModeDetached InstallMode = "Detached"
	// InstallModeHosted is on the management cluster, in the namespace that has the name of the object.
	InstallModeHosted InstallMode = "Hosted"
	// InstallModeSingleton is Default, with one Deployment for both parts of an agent.
	InstallModeSingleton InstallMode = "Singleton"
	// InstallModeSingletonHosted is Hosted, with one Deployment for both parts of an agent.
	InstallModeSingletonHosted InstallMode = "SingletonHosted"
)

// NodePlacement says on which nodes pods run.
// +kubebuilder:pruning:PreserveUnknownFields
type NodePlacement struct {
	// nodeSelector are labels that the nodes have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are taints that the nodes may have.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// FeatureGate turns a feature on or off.
// +kubebuilder:pruning:PreserveUnknownFields
type FeatureGate struct {
	// feature is the name of a feature gate.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Feature string `json:"feature"`

	// mode is Enable or Disable. The default is Disable.
	// +optional
	// +kubebuilder:default=Disable
	// +kubebuilder:validation:Enum=Enable;Disable
	Mode FeatureGateModeType `json:"mode,omitempty"`
}

// FeatureGateModeType is whether a feature is enabled.
type FeatureGateModeType string

const (
	// FeatureGateModeTypeEnable turns it on.
	FeatureGateModeTypeEnable FeatureGateModeType = "Enable"
	// FeatureGateModeTypeDisable turns it off.
	FeatureGateModeTypeDisable FeatureGateModeType = "Disable"
)

// ResourceRequirement is the requests and limits of containers.
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceRequirement struct {
	// type is Default (what the manifests say), BestEffort (nothing) or ResourceRequirement (what resourceRequirements says). The default
	// is Default.
	// +required
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum=Default;BestEffort;ResourceRequirement
	Type ResourceQosClass `json:"type"`

	// resourceRequirements is for the type ResourceRequirement.
	// +optional
	ResourceRequirements *corev1.ResourceRequirements `json:"resourceRequirements,omitempty"`
}

// ResourceQosClass is where the resources of containers are written.
type ResourceQosClass string

const (
	// ResourceQosClassDefault is in the manifests.
	ResourceQosClassDefault ResourceQosClass = "Default"
	// ResourceQosClassBestEffort is nowhere.
	ResourceQosClassBestEffort ResourceQosClass = "BestEffort"
	// ResourceQosClassResourceRequirement is in the object.
	ResourceQosClassResourceRequirement ResourceQosClass = "ResourceRequirement"
)

// RelatedResourceMeta names an object that hub-operator made.
// +kubebuilder:pruning:PreserveUnknownFields
type RelatedResourceMeta struct {
	// group is its API group, empty for the core group.
	// +required
	Group string `json:"group"`

	// version is the version of its API, such as v1.
	// +required
	Version string `json:"version"`

	// resource is its kind, as the resource is called: lower case and plural.
	// +required
	Resource string `json:"resource"`

	// namespace is its namespace, if it has one.
	// +optional
	Namespace string `json:"namespace"`

	// name is the name of the object.
	// +required
	Name string `json:"name"`
}

// GenerationStatus is the generation of an object that hub-operator applied last.
// +kubebuilder:pruning:PreserveUnknownFields
type GenerationStatus struct {
	// group is its API group, empty for the core group.
	// +required
	Group string `json:"group"`

	// version is the version of its API, such as v1.
	// +required
	Version string `json:"version"`

	// resource is its kind, as the resource is called: lower case and plural.
	// +required
	Resource string `json:"resource"`

	// namespace is its namespace, if it has one.
	// +optional
	Namespace string `json:"namespace"`

	// name is the name of the object.
	// +required
	Name string `json:"name"`

	// lastGeneration is its metadata.generation after it was applied.
	// +required
	LastGeneration int64 `json:"lastGeneration"`
}
