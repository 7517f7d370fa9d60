// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// DefaultClusterManagerConfiguration is for webhooks in the mode Default.
// +kubebuilder:pruning:PreserveUnknownFields
type DefaultClusterManagerConfiguration struct {
	// registrationWebhookConfiguration is for the webhook of registration.
	// +optional
	RegistrationWebhookConfiguration DefaultWebhookConfiguration `json:"registrationWebhookConfiguration,omitempty"`

	// workWebhookConfiguration is for the webhook of works.
	// +optional
	WorkWebhookConfiguration DefaultWebhookConfiguration `json:"workWebhookConfiguration,omitempty"`

	// addonWebhookConfiguration is for the webhook of add-ons.
	// +optional
	AddonWebhookConfiguration DefaultWebhookConfiguration `json:"addonWebhookConfiguration,omitempty"`
}

// HostedClusterManagerConfiguration is for webhooks in the mode Hosted.
// +kubebuilder:pruning:PreserveUnknownFields
type HostedClusterManagerConfiguration struct {
	// registrationWebhookConfiguration is for the webhook of registration.
	// +optional
	RegistrationWebhookConfiguration HostedWebhookConfiguration `json:"registrationWebhookConfiguration,omitempty"`

	// workWebhookConfiguration is for the webhook of works.
	// +optional
	WorkWebhookConfiguration HostedWebhookConfiguration `json:"workWebhookConfiguration,omitempty"`
}

// BindConfiguration are the ports of a webhook.
// +kubebuilder:pruning:PreserveUnknownFields
type BindConfiguration struct {
	// port is where it serves. The default is 9443.
	// +optional
	// +kubebuilder:default=9443
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// healthProbePort is the port of its probes, 0 for none. The default is 8000.
	// +optional
	// +kubebuilder:default=8000
	// +kubebuilder:validation:Maximum=65535
	HealthProbePort int32 `json:"healthProbePort"`

	// metricsPort is the port of its metrics, 0 for none. The default is 8080.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Maximum=65535
	MetricsPort int32 `json:"metricsPort"`

	// hostNetwork has its pods use the network of their node.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// DefaultWebhookConfiguration is for a webhook in the mode Default.
// +kubebuilder:pruning:PreserveUnknownFields
type DefaultWebhookConfiguration struct {
	// bindConfiguration has the ports on which the webhook listens.
	// +optional
	BindConfiguration *BindConfiguration `json:"bindConfiguration,omitempty"`
}

// HostedWebhookConfiguration is for a webhook in the mode Hosted.
// +kubebuilder:pruning:PreserveUnknownFields
type HostedWebhookConfiguration struct {
	// address is where the hub reaches it, an IPv4 address or a host name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`
	Address string `json:"address"`

	// port is the port at the address. The default is 443.
	// +optional
	// +kubebuilder:default=443
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// bindConfiguration has the ports on which the webhook listens.
	// +optional
	BindConfiguration *BindConfiguration `json:"bindConfiguration,omitempty"`
}

// ServerConfiguration is for a gRPC server.
// +kubebuilder:pruning:PreserveUnknownFields
type ServerConfiguration struct {
	// imagePullSpec is the image that the server runs.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ImagePullSpec string `json:"imagePullSpec,omitempty"`

	// featureGates turn its features on and off.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	FeatureGates []FeatureGate `json:"featureGates,omitempty"`

	// endpointsExposure says how it is reached.
	// +optional
	EndpointsExposure []EndpointExposure `json:"endpointsExposure,omitempty"`
}

// EndpointExposure is an address of a server.
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointExposure struct {
	// usage is for whom the address is: agentToHub or consumer.
	// +optional
	Usage string `json:"usage,omitempty"`

	// protocol is grpc or https. The default is grpc.
	// +required
	// +kubebuilder:default=grpc
	// +kubebuilder:validation:Enum=grpc;https
	Protocol string `json:"protocol"`

	// grpc is the address of the protocol grpc.
	// +optional
	GRPC *Endpoint `json:"grpc,omitempty"`

	// https is the address of the protocol https.
	// +optional
	HTTPS *Endpoint `json:"https,omitempty"`
}

// Endpoint is how a server is reached.
// +kubebuilder:pruning:PreserveUnknownFields
type Endpoint struct {
	// type is hostname, loadBalancer or route. The default is hostname.
	// +required
	// +kubebuilder:default=hostname
	// +kubebuilder:validation:Enum=hostname;loadBalancer;route
	Type EndpointExposureType `json:"type,omitempty"`

	// hostname is a host name, for the type hostname.
	// +optional
	Hostname *HostnameConfig `json:"hostname,omitempty"`

	// loadBalancer is a load balancer, for the type loadBalancer.
	// +optional
	LoadBalancer *LoadBalancerConfig `json:"loadBalancer,omitempty"`

	// route is a route of OpenShift, for the type route.
	// +optional
	Route *RouteConfig `json:"route,omitempty"`
}

// HostnameConfig is a host name.
// +kubebuilder:pruning:PreserveUnknownFields
type HostnameConfig struct {
	// host is the DNS name of the server.
	// +required
	Host string `json:"host"`

	// caBundle are the certificates by which it is trusted.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// LoadBalancerConfig is a load balancer.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerConfig struct {
	// host is the DNS name by which the server is reached.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle are the certificates by which it is trusted.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// RouteConfig is a route of OpenShift.
// +kubebuilder:pruning:PreserveUnknownFields
type RouteConfig struct {
	// host is the DNS name by which the server is reached.
	// +optional
	Host string `json:"host,omitempty"`

	// caBundle are the certificates by which it is trusted.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// EndpointExposureType is how a server is reached.
type EndpointExposureType string

const (
	// EndpointTypeHostname is by a host name.
	EndpointTypeHostname EndpointExposureType = "hostname"
	// EndpointTypeLoadBalancer is by a load balancer.
	EndpointTypeLoadBalancer EndpointExposureType = "loadBalancer"
	// EndpointTypeRoute is by a route.
	EndpointTypeRoute EndpointExposureType = "route"
)
