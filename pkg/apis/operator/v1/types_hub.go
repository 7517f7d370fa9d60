// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// RegistrationHubConfiguration configures how clusters join a hub.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationHubConfiguration struct {
	// autoApproveUsers are the users whose clusters the hub accepts automatically. They have an effect only with the feature gate
	// ManagedClusterAutoApproval.
	// +optional
	AutoApproveUsers []string `json:"autoApproveUsers,omitempty"`

	// featureGates enable and disable features of registration. An unknown feature gate has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// registrationDrivers are the ways in which clusters can obtain an identity. The default is csr.
	// +optional
	// +listType=map
	// +listMapKey=authType
	RegistrationDrivers []RegistrationDriverHub `json:"registrationDrivers,omitempty"`

	// importerConfiguration configures Open Cluster Management's importer of clusters. It has no effect.
	// +optional
	ImporterConfiguration *ImporterConfiguration `json:"importerConfiguration,omitempty"`
}

// ImporterConfiguration configures an importer of clusters.
// +kubebuilder:pruning:PreserveUnknownFields
type ImporterConfiguration struct {
	// renderers are the sources of the importer's manifests: render-auto or render-from-config-secret.
	// +optional
	Renderers []string `json:"renderers,omitempty"`
}

const (
	// AwsIrsaAuthType is the type of identities that are IAM roles of AWS.
	AwsIrsaAuthType = "awsirsa"
	// CSRAuthType is the type of identities that are client certificates.
	CSRAuthType = "csr"
	// GRPCAuthType is the type of identities of Open Cluster Management's gRPC server.
	GRPCAuthType = "grpc"
)

// RegistrationDriverHub defines one way in which clusters can obtain an identity.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationDriverHub struct {
	// authType is the type of the identity: csr (a client certificate that the hub signs), awsirsa (an IAM role of AWS) or grpc (only for Open
	// Cluster Management's server). The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// csr defines which clusters the hub accepts automatically. It applies to the authType csr.
	// +optional
	CSR *CSRConfig `json:"csr,omitempty"`

	// awsirsa names the EKS cluster of the hub. It applies to the authType awsirsa.
	// +optional
	AwsIrsa *AwsIrsaConfig `json:"awsirsa,omitempty"`

	// grpc defines which clusters the hub accepts automatically. It applies to the authType grpc.
	// +optional
	GRPC *GRPCRegistrationConfig `json:"grpc,omitempty"`
}

// CSRConfig configures identities that are client certificates.
// +kubebuilder:pruning:PreserveUnknownFields
type CSRConfig struct {
	// autoApprovedIdentities are the users whose clusters the hub accepts automatically.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// AwsIrsaConfig configures identities that are IAM roles.
// +kubebuilder:pruning:PreserveUnknownFields
type AwsIrsaConfig struct {
	// hubClusterArn is the ARN of the hub, such as arn:aws:eks:us-west-2:123456789012:cluster/hub.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn,omitempty"`

	// autoApprovedIdentities are patterns of the ARNs whose clusters the hub accepts automatically.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`

	// tags are the tags of the resources that the hub creates in AWS, each as key=value.
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// GRPCRegistrationConfig configures identities of gRPC.
// +kubebuilder:pruning:PreserveUnknownFields
type GRPCRegistrationConfig struct {
	// autoApprovedIdentities are the users whose clusters the hub accepts automatically.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// WorkConfiguration configures works.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkConfiguration struct {
	// featureGates enable and disable features of works. An unknown feature gate has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// workDriver is the way in which works reach clusters: kube (by the API of the hub), mqtt or grpc (both only with Open Cluster
	// Management). The default is kube.
	// +optional
	// +kubebuilder:default=kube
	// +kubebuilder:validation:Enum=kube;mqtt;grpc
	WorkDriver WorkDriverType `json:"workDriver,omitempty"`
}

// WorkDriverType is the way in which works reach clusters.
type WorkDriverType string

const (
	// WorkDriverTypeKube uses the API of the hub.
	WorkDriverTypeKube WorkDriverType = "kube"
	// WorkDriverTypeMqtt uses an MQTT broker.
	WorkDriverTypeMqtt WorkDriverType = "mqtt"
	// WorkDriverTypeGrpc uses a gRPC broker.
	WorkDriverTypeGrpc WorkDriverType = "grpc"
)

// AddOnManagerConfiguration configures add-ons.
// +kubebuilder:pruning:PreserveUnknownFields
type AddOnManagerConfiguration struct {
	// featureGates enable and disable features of add-ons.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}

// PlacementConfiguration configures placements.
// +kubebuilder:pruning:PreserveUnknownFields
type PlacementConfiguration struct {
	// featureGates enable and disable features of placements. An unknown feature gate has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}
