// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// DefaultClusterManagerConfiguration configures webhooks in the mode Default.
// +kubebuilder:pruning:PreserveUnknownFields
type DefaultClusterManagerConfiguration struct {
	// registrationWebhookConfiguration configures the webhook for registration.
	// +optional
	RegistrationWebhookConfiguration DefaultWebhookConfiguration `json:"registrationWebhookConfiguration,omitempty"`

	// workWebhookConfiguration configures the webhook for works.
	// +optional
	WorkWebhookConfiguration DefaultWebhookConfiguration `json:"workWebhookConfiguration,omitempty"`

	// addonWebhookConfiguration configures the webhook for add-ons.
	// +optional
	AddonWebhookConfiguration DefaultWebhookConfiguration `json:"addonWebhookConfiguration,omitempty"`
}

// HostedClusterManagerConfiguration configures webhooks in the mode Hosted.
// +kubebuilder:pruning:PreserveUnknownFields
type HostedClusterManagerConfiguration struct {
	// registrationWebhookConfiguration configures the webhook for registration.
	// +optional
	RegistrationWebhookConfiguration HostedWebhookConfiguration `json:"registrationWebhookConfiguration,omitempty"`

	// workWebhookConfiguration configures the webhook for works.
	// +optional
	WorkWebhookConfiguration HostedWebhookConfiguration `json:"workWebhookConfiguration,omitempty"`
}

// BindConfiguration defines the ports of a webhook.
// +kubebuilder:pruning:PreserveUnknownFields
type BindConfiguration struct {
	// port is the port on which the webhook serves. The default is 9443.
	// +optional
	// +kubebuilder:default=9443
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// healthProbePort is the port of the health probes; 0 disables them. The default is 8000.
	// +optional
	// +kubebuilder:default=8000
	// +kubebuilder:validation:Maximum=65535
	HealthProbePort int32 `json:"healthProbePort"`

	// metricsPort is the port of the metrics; 0 disables them. The default is 8080.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Maximum=65535
	MetricsPort int32 `json:"metricsPort"`

	// hostNetwork defines whether the pods of the webhook use the network of their node.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// DefaultWebhookConfiguration configures a webhook in the mode Default.
// +kubebuilder:pruning:PreserveUnknownFields
type DefaultWebhookConfiguration struct {
	// bindConfiguration defines the ports on which the webhook listens.
	// +optional
	BindConfiguration *BindConfiguration `json:"bindConfiguration,omitempty"`
}

// HostedWebhookConfiguration configures a webhook in the mode Hosted.
// +kubebuilder:pruning:PreserveUnknownFields
type HostedWebhookConfiguration struct {
	// address is the address at which the hub reaches the webhook, an IPv4 address or a host name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`
	Address string `json:"address"`

	// port is the port at the address. The default is 443.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// bindConfiguration defines the ports on which the webhook listens.
	// +optional
	BindConfiguration *BindConfiguration `json:"bindConfiguration,omitempty"`
}

// ServerConfiguration configures a gRPC server.
// +kubebuilder:pruning:PreserveUnknownFields
type ServerConfiguration struct {
	// imagePullSpec is the image of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// featureGates enable and disable features of the server.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// endpointsExposure defines how clients reach the server.
	// +optional
	EndpointsExposure []EndpointExposure `json:"endpointsExposure,omitempty"`
}

// EndpointExposure is an address of a server.
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointExposure struct {
	// usage is the intended client of the address: agentToHub or consumer.
	// +optional
	Usage string `json:"usage,omitempty"`

	// protocol is grpc or https. The default is grpc.
	// +required
	// +kubebuilder:default=grpc
	// +kubebuilder:validation:Enum=grpc;https
	Protocol string `json:"protocol"`

	// grpc is the address for the protocol grpc.
	// +optional
	GRPC *Endpoint `json:"grpc,omitempty"`

	// https is the address for the protocol https.
	// +optional
	HTTPS *Endpoint `json:"https,omitempty"`
}

// Endpoint defines how clients reach a server.
// +kubebuilder:pruning:PreserveUnknownFields
type Endpoint struct {
	// type is hostname, loadBalancer or route. The default is hostname.
	// +required
	// +kubebuilder:default=hostname
	// +kubebuilder:validation:Enum=hostname;loadBalancer;route
	Type EndpointExposureType `json:"type,omitempty"`

	// hostname is a host name. It applies to the type hostname.
	// +optional
	Hostname *HostnameConfig `json:"hostname,omitempty"`

	// loadBalancer is a load balancer. It applies to the type loadBalancer.
	// +optional
	LoadBalancer *LoadBalancerConfig `json:"loadBalancer,omitempty"`

	// route is a Route of OpenShift. It applies to the type route.
	// +optional
	Route *RouteConfig `json:"route,omitempty"`
}

// HostnameConfig is a host name.
// +kubebuilder:pruning:PreserveUnknownFields
type HostnameConfig struct {
	// host is the DNS name of the server.
	// +required
	Host string `json:"host"`

	// caBundle contains the CA certificates with which clients verify the server.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// LoadBalancerConfig is a load balancer.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerConfig struct {
	// host is the DNS name at which clients reach the server.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle contains the CA certificates with which clients verify the server.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// RouteConfig is a Route of OpenShift.
// +kubebuilder:pruning:PreserveUnknownFields
type RouteConfig struct {
	// host is the DNS name at which clients reach the server.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle contains the CA certificates with which clients verify the server.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// EndpointExposureType defines how clients reach a server.
type EndpointExposureType string

const (
	// EndpointTypeHostname exposes the server at a host name.
	EndpointTypeHostname EndpointExposureType = "hostname"
	// EndpointTypeLoadBalancer exposes the server by a load balancer.
	EndpointTypeLoadBalancer EndpointExposureType = "loadBalancer"
	// EndpointTypeRoute exposes the server by a Route of OpenShift.
	EndpointTypeRoute EndpointExposureType = "route"
)
