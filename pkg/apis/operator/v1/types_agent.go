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

	// caBundle are the certificates, PEM, by which the address is trusted. Without it, those of the client's system are.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// HubApiServerHostAlias is a line in the hosts file of the agent's pods.
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

// RegistrationConfiguration is for a registration agent.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationConfiguration struct {
	// clientCertExpirationSeconds is how long a client certificate of the agent shall be valid, at least 600. The hub decides: 0, the
	// default, is as long as the hub gives, and more than the hub's limit is the limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= 600",message="must be 0, which leaves it to the hub, or at least 600"
	ClientCertExpirationSeconds int32 `json:"clientCertExpirationSeconds,omitempty"`

	// featureGates turn features of the registration agent on and off. An unknown one has no effect: see the condition
	// ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// clusterAnnotations are annotations of the ManagedCluster. Their names begin with agent.open-cluster-management.io/. Others have no
	// effect: see the condition FieldsIgnored.
	// +optional
	ClusterAnnotations map[string]string `json:"clusterAnnotations,omitempty"`

	// clusterLabels are labels of the ManagedCluster. The hub decides which of them an agent may set.
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// kubeAPIQPS is the most requests in a second that each client of the agent sends to the managed cluster. The default is 50, also for 0.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the most requests that each client of the agent sends to the managed cluster at once. The default is 100, also for 0.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// bootstrapKubeConfigs are for agents that can move between hubs.
	// +optional
	BootstrapKubeConfigs BootstrapKubeConfigs `json:"bootstrapKubeConfigs,omitempty"`

	// registrationDriver is how the cluster gets its identity on the hub.
	// +optional
	RegistrationDriver RegistrationDriver `json:"registrationDriver,omitempty"`

	// addOnKubeClientRegistrationDriver is how add-ons of Open Cluster Management get theirs. It has no effect.
	// +optional
	AddOnKubeClientRegistrationDriver *AddOnRegistrationDriver `json:"addOnKubeClientRegistrationDriver,omitempty"`

	// clusterClaimConfiguration limits which facts of the managed cluster are shown on the hub.
	// +optional
	ClusterClaimConfiguration *ClusterClaimConfiguration `json:"clusterClaimConfiguration,omitempty"`
}

// ClusterClaimConfiguration limits the ClusterClaims of a managed cluster.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterClaimConfiguration struct {
	// maxCustomClusterClaims is the maximum number of ClusterClaims that are sent to the hub, besides the agent's own and those with a
	// reserved suffix. The default is 20; 0 sends none.
	// +required
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	MaxCustomClusterClaims int32 `json:"maxCustomClusterClaims"`

	// reservedClusterClaimSuffixes are ends of the names of ClusterClaims that are sent to the hub beside maxCustomClusterClaims. The hub takes
	// 512 of a cluster in all. At most 10, each of 1 to 64 characters.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	ReservedClusterClaimSuffixes []string `json:"reservedClusterClaimSuffixes,omitempty"`
}

// RegistrationDriver is how a cluster gets its identity.
// +kubebuilder:pruning:PreserveUnknownFields
type RegistrationDriver struct {
	// authType is csr (a client certificate that the hub signs), awsirsa (an IAM role of AWS) or grpc (Open Cluster Management's agents
	// only). The default is csr.
	// +required
	// +kubebuilder:default=csr
	// +kubebuilder:validation:Enum=csr;awsirsa;grpc
	AuthType string `json:"authType,omitempty"`

	// awsIrsa names the EKS clusters of the hub and of the agent. It is for the authType awsirsa.
	// +optional
	AwsIrsa *AwsIrsa `json:"awsIrsa,omitempty"`
}

// AwsIrsa names two EKS clusters.
// +kubebuilder:pruning:PreserveUnknownFields
type AwsIrsa struct {
	// hubClusterArn is the hub, such as arn:aws:eks:us-west-2:123456789012:cluster/hub.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	HubClusterArn string `json:"hubClusterArn"`

	// managedClusterArn is the managed cluster, in the same form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$`
	ManagedClusterArn string `json:"managedClusterArn"`
}

// AddOnRegistrationDriver is how add-ons get their identity.
// +kubebuilder:pruning:PreserveUnknownFields
type AddOnRegistrationDriver struct {
	// authType is csr or token: by what an add-on proves to the hub who it is.
	// +optional
	// +kubebuilder:validation:Enum=csr;token
	AuthType string `json:"authType,omitempty"`

	// token says what tokens are like. It is for the authType token.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
}

// TokenConfig says what tokens of add-ons are like.
// +kubebuilder:pruning:PreserveUnknownFields
type TokenConfig struct {
	// expirationSeconds is how long a token shall be valid. 0, the default, is as long as a certificate of the hub.
	// +optional
	ExpirationSeconds int64 `json:"expirationSeconds,omitempty"`
}

// TypeBootstrapKubeConfigs says how an agent chooses its hub.
type TypeBootstrapKubeConfigs string

const (
	// LocalSecrets is a list of secrets, of which the first that works is taken.
	LocalSecrets TypeBootstrapKubeConfigs = "LocalSecrets"
	// None is the one secret bootstrap-hub-kubeconfig.
	None TypeBootstrapKubeConfigs = "None"
)

// BootstrapKubeConfigs are the hubs that an agent may go to.
// +kubebuilder:pruning:PreserveUnknownFields
type BootstrapKubeConfigs struct {
	// type is None (the Secret bootstrap-hub-kubeconfig) or LocalSecrets (the Secrets in localSecretsConfig). The default is None.
	// +required
	// +kubebuilder:default=None
	// +kubebuilder:validation:Enum=None;LocalSecrets
	Type TypeBootstrapKubeConfigs `json:"type,omitempty"`

	// localSecretsConfig names the secrets of the type LocalSecrets.
	// +optional
	LocalSecrets *LocalSecretsConfig `json:"localSecretsConfig,omitempty"`
}

// LocalSecretsConfig names the bootstrap kubeconfigs of several hubs.
// +kubebuilder:pruning:PreserveUnknownFields
type LocalSecretsConfig struct {
	// kubeConfigSecrets are secrets in the namespace of the agent's pods. The first that works is taken.
	// +required
	// +kubebuilder:validation:MaxItems=64
	KubeConfigSecrets []KubeConfigSecret `json:"kubeConfigSecrets"`

	// hubConnectionTimeoutSeconds is after how long without the hub the next one is tried: at least 180, the default is 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=180
	HubConnectionTimeoutSeconds int32 `json:"hubConnectionTimeoutSeconds,omitempty"`
}

// KubeConfigSecret names a secret with a bootstrap kubeconfig.
// +kubebuilder:pruning:PreserveUnknownFields
type KubeConfigSecret struct {
	// name is the name of the secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WorkAgentConfiguration is for a work agent.
// +kubebuilder:pruning:PreserveUnknownFields
type WorkAgentConfiguration struct {
	// featureGates turn features of the work agent on and off. An unknown one has no effect: see the condition ValidFeatureGates.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// kubeAPIQPS is the most requests in a second that each client of the agent sends to the managed cluster. The default is 50, also for 0.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	KubeAPIQPS int32 `json:"kubeAPIQPS,omitempty"`

	// kubeAPIBurst is the most requests that each client of the agent sends to the managed cluster at once. The default is 100, also for 0.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	KubeAPIBurst int32 `json:"kubeAPIBurst,omitempty"`

	// hubKubeAPIQPS is the most requests in a second to the hub. The default is 50, also for 0.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=0
	HubKubeAPIQPS int32 `json:"hubKubeAPIQPS,omitempty"`

	// hubKubeAPIBurst is the most requests to the hub at once. The default is 100, also for 0.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	HubKubeAPIBurst int32 `json:"hubKubeAPIBurst,omitempty"`

	// appliedManifestWorkEvictionGracePeriod is how long a work that is missing on the hub is kept on the managed cluster, such as 1h30m.
	// The default is the agent's.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	AppliedManifestWorkEvictionGracePeriod *metav1.Duration `json:"appliedManifestWorkEvictionGracePeriod,omitempty"`

	// statusSyncInterval is how often an agent of Open Cluster Management looks at what works have made, from 5s to 1h. It has no effect: the
	// agent watches it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	StatusSyncInterval *metav1.Duration `json:"statusSyncInterval,omitempty"`
}
