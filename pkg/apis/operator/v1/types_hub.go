// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// RegistrationHubConfiguration says how clusters join a hub.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationHubConfiguration struct {
	// autoApproveUsers are users whose clusters are accepted by themselves. They have an effect only with the feature gate
	// ManagedClusterAutoApproval.
	// +optional
	AutoApproveUsers []string `json:"autoApproveUsers,omitempty"`

	// featureGates turn features of registration on and off. An unknown one has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// registrationDrivers are the ways in which clusters can get an identity. The default is csr.
	// +optional
	// +listType=map
	// +listMapKey=authType
	RegistrationDrivers []RegistrationDriverHub `json:"registrationDrivers,omitempty"`

	// importerConfiguration is for Open Cluster Management's importer of clusters. It has no effect.
	// +optional
	ImporterConfiguration *ImporterConfiguration `json:"importerConfiguration,omitempty"`
}

// ImporterConfiguration is for an importer of clusters.
// +kubebuilder:pruning:PreserveUnknownFields
type ImporterConfiguration struct {
	// renderers say where the importer has its manifests from: render-auto or render-from-config-secret.
	// +optional
	Renderers []string `json:"renderers,omitempty"`
}

const (
	// AwsIrsaAuthType is an identity by an IAM role of AWS.
	AwsIrsaAuthType = "awsirsa"
	// CSRAuthType is an identity by a client certificate.
	CSRAuthType = "csr"
	// GRPCAuthType is an identity of Open Cluster Management's gRPC server.
	GRPCAuthType = "grpc"
)

// RegistrationDriverHub is one way in which clusters can get an identity.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationDriverHub struct {
	// authType is csr (a client certificate that the hub signs), awsirsa (an IAM role of AWS) or grpc (Open Cluster Management's server
	// only). The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// csr says whose clusters are accepted by themselves. It is for the authType csr.
	// +optional
	CSR *CSRConfig `json:"csr,omitempty"`

	// awsirsa names the EKS cluster of the hub. It is for the authType awsirsa.
	// +optional
	AwsIrsa *AwsIrsaConfig `json:"awsirsa,omitempty"`

	// grpc says whose clusters are accepted by themselves. It is for the authType grpc.
	// +optional
	GRPC *GRPCRegistrationConfig `json:"grpc,omitempty"`
}

// CSRConfig is for identities by client certificates.
// +kubebuilder:pruning:PreserveUnknownFields
type CSRConfig struct {
	// autoApprovedIdentities are users whose clusters are accepted by themselves.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// AwsIrsaConfig is for identities by IAM roles.
// +kubebuilder:pruning:PreserveUnknownFields
type AwsIrsaConfig struct {
	// hubClusterArn is the hub, such as arn:aws:eks:us-west-2:123456789012:cluster/hub.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn,omitempty"`

	// autoApprovedIdentities are patterns of ARNs whose clusters are accepted by themselves.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`

	// tags are those of what the hub makes in AWS, key=value.
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// GRPCRegistrationConfig is for identities by gRPC.
// +kubebuilder:pruning:PreserveUnknownFields
type GRPCRegistrationConfig struct {
	// autoApprovedIdentities are users whose clusters are accepted by themselves.
	// +optional
	AutoApprovedIdentities []string `json:"autoApprovedIdentities,omitempty"`
}

// WorkConfiguration is about works.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkConfiguration struct {
	// featureGates turn features of works on and off. An unknown one has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// workDriver is how works come to clusters: kube (by the API of the hub), mqtt or grpc (Open Cluster Management only). The default is
	// kube.
	// +optional
	// +kubebuilder:default=kube
	// +kubebuilder:validation:Enum=kube;mqtt;grpc
	WorkDriver WorkDriverType `json:"workDriver,omitempty"`
}

// WorkDriverType is how works come to clusters.
type WorkDriverType string

const (
	// WorkDriverTypeKube is by the API of the hub.
	WorkDriverTypeKube WorkDriverType = "kube"
	// WorkDriverTypeMqtt is by a broker of MQTT.
	WorkDriverTypeMqtt WorkDriverType = "mqtt"
	// WorkDriverTypeGrpc is by a broker of gRPC.
	WorkDriverTypeGrpc WorkDriverType = "grpc"
)

// AddOnManagerConfiguration is about add-ons.
// +kubebuilder:pruning:PreserveUnknownFields
type AddOnManagerConfiguration struct {
	// featureGates turn features of add-ons on and off.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}

// PlacementConfiguration is about placements.
// +kubebuilder:pruning:PreserveUnknownFields
type PlacementConfiguration struct {
	// featureGates turn features of placements on and off. An unknown one has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`
}
