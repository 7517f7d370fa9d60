// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServerURL is an address of a managed cluster's API server.
// +kubebuilder:pruning:PreserveUnknownFields
type ServerURL struct {
	// url is the address, such as https://cluster.example.com:6443.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`

	// caBundle contains the CA certificates with which clients verify the address, in PEM format. Without it, clients use the certificates of
	// their system.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// HubApiServerHostAlias is an entry in the hosts file of the agent's pods.
// +kubebuilder:pruning:PreserveUnknownFields
type HubApiServerHostAlias struct {
	// ip is the IPv4 address of the hub.
	// +required
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$`
	IP string `json:"ip"`

	// hostname is the name of the hub in the bootstrap kubeconfig.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`
	Hostname string `json:"hostname"`
}

// RegistrationConfiguration configures a registration agent.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationConfiguration struct {
	// clientCertExpirationSeconds is the requested lifetime of the agent's client certificates, in seconds: 0 or at least 600. The hub
	// decides: 0, the default, requests no specific lifetime, and a lifetime above the hub's limit is reduced to the limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= 600",message="must be 0, which leaves it to the hub, or at least 600"
	ClientCertExpirationSeconds int32 `json:"clientCertExpirationSeconds,omitempty"`

	// featureGates enable and disable features of the registration agent. An unknown feature gate has no effect: see the condition
	// ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// clusterAnnotations are annotations that the agent sets on the ManagedCluster. Their keys must begin with
	// agent.open-cluster-management.io/. Others have no effect: see the condition FieldsIgnored.
	// +optional
	ClusterAnnotations map[string]string `json:"clusterAnnotations,omitempty"`

	// clusterLabels are labels that the agent sets on the ManagedCluster. The hub decides which of them an agent may set.
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// kubeAPIQPS is the maximum number of requests per second that each client of the agent sends to the managed cluster. The default is 50; 0
	// means the default.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the maximum number of requests that each client of the agent sends to the managed cluster at once. The default is 100; 0
	// means the default.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// bootstrapKubeConfigs configure the hubs of an agent that can switch between hubs.
	// +optional
	BootstrapKubeConfigs BootstrapKubeConfigs `json:"bootstrapKubeConfigs,omitempty"`

	// registrationDriver defines how the cluster obtains its identity on the hub.
	// +optional
	RegistrationDriver RegistrationDriver `json:"registrationDriver,omitempty"`

	// addOnKubeClientRegistrationDriver defines how add-ons of Open Cluster Management obtain their identity. It has no effect.
	// +optional
	AddOnKubeClientRegistrationDriver *AddOnRegistrationDriver `json:"addOnKubeClientRegistrationDriver,omitempty"`

	// clusterClaimConfiguration limits the facts of the managed cluster that are reported to the hub.
	// +optional
	ClusterClaimConfiguration *ClusterClaimConfiguration `json:"clusterClaimConfiguration,omitempty"`
}

// ClusterClaimConfiguration limits the ClusterClaims of a managed cluster.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterClaimConfiguration struct {
	// maxCustomClusterClaims is the maximum number of ClusterClaims that are sent to the hub, in addition to the agent's own and those with a
	// reserved suffix. The default is 20; 0 sends no others.
	// +required
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	MaxCustomClusterClaims int32 `json:"maxCustomClusterClaims"`

	// reservedClusterClaimSuffixes are suffixes of the names of ClusterClaims that are sent to the hub and do not count toward
	// maxCustomClusterClaims. The hub accepts 512 ClusterClaims of a cluster in total. At most 10 suffixes, each of 1 to 64 characters.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	ReservedClusterClaimSuffixes []string `json:"reservedClusterClaimSuffixes,omitempty"`
}

// RegistrationDriver defines how a cluster obtains its identity.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationDriver struct {
	// authType is the type of the identity: csr (a client certificate that the hub signs), awsirsa (an IAM role of AWS) or grpc (only for Open
	// Cluster Management's agents). The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// awsIrsa names the EKS clusters of the hub and of the agent. It applies to the authType awsirsa.
	// +optional
	AwsIrsa *AwsIrsa `json:"awsIrsa,omitempty"`
}

// AwsIrsa names the EKS clusters of a hub and of an agent.
// +kubebuilder:pruning:PreserveUnknownFields
type AwsIrsa struct {
	// hubClusterArn is the ARN of the hub, such as arn:aws:eks:us-west-2:123456789012:cluster/hub.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn"`

	// managedClusterArn is the ARN of the managed cluster, in the same format.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	ManagedClusterArn string `json:"managedClusterArn"`
}

// AddOnRegistrationDriver defines how add-ons obtain their identity.
// +kubebuilder:pruning:PreserveUnknownFields
type AddOnRegistrationDriver struct {
	// authType is the credential with which an add-on authenticates to the hub: csr or token.
	// +optional
	// +kubebuilder:validation:Enum=csr;token
	AuthType string `json:"authType,omitempty"`

	// token configures the tokens of add-ons. It applies to the authType token.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
}

// TokenConfig configures the tokens of add-ons.
// +kubebuilder:pruning:PreserveUnknownFields
type TokenConfig struct {
	// expirationSeconds is the requested lifetime of a token, in seconds. 0, the default, requests the lifetime of the hub's certificates.
	// +optional
	ExpirationSeconds int64 `json:"expirationSeconds,omitempty"`
}

// TypeBootstrapKubeConfigs defines how an agent chooses its hub.
type TypeBootstrapKubeConfigs string

const (
	// LocalSecrets means that the agent has a list of Secrets and uses the first that works.
	LocalSecrets TypeBootstrapKubeConfigs = "LocalSecrets"
	// None means that the agent has a single Secret, bootstrap-hub-kubeconfig.
	None TypeBootstrapKubeConfigs = "None"
)

// BootstrapKubeConfigs defines the hubs that an agent may use.
// +kubebuilder:pruning:PreserveUnknownFields
type BootstrapKubeConfigs struct {
	// type is None (the Secret bootstrap-hub-kubeconfig) or LocalSecrets (the Secrets in localSecretsConfig). The default is None.
	// +required
	// +kubebuilder:default=None
	// +kubebuilder:validation:Enum=None;LocalSecrets
	Type TypeBootstrapKubeConfigs `json:"type,omitempty"`

	// localSecretsConfig names the Secrets. It applies to the type LocalSecrets.
	// +optional
	LocalSecrets *LocalSecretsConfig `json:"localSecretsConfig,omitempty"`
}

// LocalSecretsConfig names the bootstrap kubeconfigs of several hubs.
// +kubebuilder:pruning:PreserveUnknownFields
type LocalSecretsConfig struct {
	// kubeConfigSecrets are Secrets in the namespace of the agent's pods. The agent uses the first that works.
	// +required
	// +kubebuilder:validation:MaxItems=64
	KubeConfigSecrets []KubeConfigSecret `json:"kubeConfigSecrets"`

	// hubConnectionTimeoutSeconds is the time without a connection to the hub after which the agent tries the next hub, in seconds. It must be
	// at least 180. The default is 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=180
	HubConnectionTimeoutSeconds int32 `json:"hubConnectionTimeoutSeconds,omitempty"`
}

// KubeConfigSecret names a Secret with a bootstrap kubeconfig.
// +kubebuilder:pruning:PreserveUnknownFields
type KubeConfigSecret struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WorkAgentConfiguration configures a work agent.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkAgentConfiguration struct {
	// featureGates enable and disable features of the work agent. An unknown feature gate has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// kubeAPIQPS is the maximum number of requests per second that each client of the agent sends to the managed cluster. The default is 50; 0
	// means the default.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the maximum number of requests that each client of the agent sends to the managed cluster at once. The default is 100; 0
	// means the default.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// hubKubeAPIQPS is the maximum number of requests per second that the agent sends to the hub. The default is 50; 0 means the default.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	HubKubeAPIQPS int32 `json:"hubKubeAPIQPS,omitempty"`

	// hubKubeAPIBurst is the maximum number of requests that the agent sends to the hub at once. The default is 100; 0 means the default.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	HubKubeAPIBurst int32 `json:"hubKubeAPIBurst,omitempty"`

	// appliedManifestWorkEvictionGracePeriod is how long the objects of a work that no longer exists on the hub remain on the managed cluster,
	// as a duration such as 1h30m. The default is the default of the agent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	AppliedManifestWorkEvictionGracePeriod *metav1.Duration `json:"appliedManifestWorkEvictionGracePeriod,omitempty"`

	// statusSyncInterval is the interval at which an agent of Open Cluster Management checks the objects of works, from 5s to 1h. It has no
	// effect: this agent watches the objects.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	StatusSyncInterval *metav1.Duration `json:"statusSyncInterval,omitempty"`
}
