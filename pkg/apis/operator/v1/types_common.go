// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// InstallMode defines where the pods of a hub or an agent run.
type InstallMode string

const (
	// InstallModeDefault runs the pods on the hub or the managed cluster itself.
	InstallModeDefault InstallMode = "Default"
	// InstallModeDetached runs the pods on the management cluster, in a namespace whose name begins with the name of the object.
	InstallModeDetached InstallMode = "Detached"
	// InstallModeHosted runs the pods on the management cluster, in the namespace that has the name of the object.
	InstallModeHosted InstallMode = "Hosted"
	// InstallModeSingleton is InstallModeDefault with a single Deployment for both parts of an agent.
	InstallModeSingleton InstallMode = "Singleton"
	// InstallModeSingletonHosted is InstallModeHosted with a single Deployment for both parts of an agent.
	InstallModeSingletonHosted InstallMode = "SingletonHosted"
)

// NodePlacement defines the nodes on which pods may run.
// +kubebuilder:pruning:PreserveUnknownFields
type NodePlacement struct {
	// nodeSelector are the labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints that a node may have.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// FeatureGate enables or disables a feature.
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

// FeatureGateModeType defines whether a feature is enabled.
type FeatureGateModeType string

const (
	// FeatureGateModeTypeEnable enables the feature.
	FeatureGateModeTypeEnable FeatureGateModeType = "Enable"
	// FeatureGateModeTypeDisable disables the feature.
	FeatureGateModeTypeDisable FeatureGateModeType = "Disable"
)

// ResourceRequirement defines the resource requests and limits of containers.
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceRequirement struct {
	// type is Default (the requests and limits of the manifests), BestEffort (no requests and limits) or ResourceRequirement (those in
	// resourceRequirements). The default is Default.
	// +required
	// +kubebuilder:default=Default
	// +kubebuilder:validation:Enum=Default;BestEffort;ResourceRequirement
	Type ResourceQosClass `json:"type"`

	// resourceRequirements are the requests and limits of each container. It applies to the type ResourceRequirement.
	// +optional
	ResourceRequirements *corev1.ResourceRequirements `json:"resourceRequirements,omitempty"`
}

// ResourceQosClass defines which resource requests and limits containers have.
type ResourceQosClass string

const (
	// ResourceQosClassDefault uses the requests and limits of the manifests.
	ResourceQosClassDefault ResourceQosClass = "Default"
	// ResourceQosClassBestEffort sets no requests and limits.
	ResourceQosClassBestEffort ResourceQosClass = "BestEffort"
	// ResourceQosClassResourceRequirement uses the requests and limits of the object.
	ResourceQosClassResourceRequirement ResourceQosClass = "ResourceRequirement"
)

// RelatedResourceMeta identifies an object that hub-operator created.
// +kubebuilder:pruning:PreserveUnknownFields
type RelatedResourceMeta struct {
	// group is the API group of the object, empty for the core group.
	// +required
	Group string `json:"group"`

	// version is the API version of the object, such as v1.
	// +required
	Version string `json:"version"`

	// resource is the resource name of the object's kind, in lower case and plural.
	// +required
	Resource string `json:"resource"`

	// namespace is the namespace of the object, empty if it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace"`

	// name is the name of the object.
	// +required
	Name string `json:"name"`
}

// GenerationStatus records the generation of an object that hub-operator applied last.
// +kubebuilder:pruning:PreserveUnknownFields
type GenerationStatus struct {
	// group is the API group of the object, empty for the core group.
	// +required
	Group string `json:"group"`

	// version is the API version of the object, such as v1.
	// +required
	Version string `json:"version"`

	// resource is the resource name of the object's kind, in lower case and plural.
	// +required
	Resource string `json:"resource"`

	// namespace is the namespace of the object, empty if it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace"`

	// name is the name of the object.
	// +required
	Name string `json:"name"`

	// lastGeneration is the metadata.generation of the object after it was applied.
	// +required
	LastGeneration int64 `json:"lastGeneration"`
}
