// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/clusterhub/clusterhub/pkg/apis/openmcp"

// The names of these constants are those of openMCP's own Go module, so that programs that use it only need another import.

// Phases of all kinds except requests.
const (
	// StatusPhaseReady means that all conditions are True.
	StatusPhaseReady = "Ready"
	// StatusPhaseProgressing means that at least one condition is not True.
	StatusPhaseProgressing = "Progressing"
	// StatusPhaseTerminating means that the object is being deleted.
	StatusPhaseTerminating = "Terminating"
)

// Phases of requests. A request without a phase is also pending.
const (
	// REQUEST_PENDING means that the request is neither granted nor denied.
	REQUEST_PENDING = "Pending"
	// REQUEST_GRANTED means that the request is granted.
	REQUEST_GRANTED = "Granted"
	// REQUEST_DENIED means that the request is denied.
	REQUEST_DENIED = "Denied"
)

// Common purposes of clusters. Other values are allowed.
const (
	// PURPOSE_PLATFORM is the purpose of clusters for the controllers of the platform.
	PURPOSE_PLATFORM = "platform"
	// PURPOSE_WORKLOAD is the purpose of clusters for the controllers of services.
	PURPOSE_WORKLOAD = "workload"
	// PURPOSE_ONBOARDING is the purpose of clusters for the resources that users create first.
	PURPOSE_ONBOARDING = "onboarding"
	// PURPOSE_MCP is the purpose of clusters for managed control planes.
	PURPOSE_MCP = "mcp"
)

// Names of endpoints.
const (
	// APISERVER_ENDPOINT_EXTERNAL is the endpoint of the API server for clients outside of the platform.
	APISERVER_ENDPOINT_EXTERNAL = "apiserver-external"
	// APISERVER_ENDPOINT_INTERNAL is the endpoint of the API server for clients in other clusters of the platform.
	APISERVER_ENDPOINT_INTERNAL = "apiserver-internal"
)

// Labels and annotations.
const (
	// K8sVersionLabel is the label with the Kubernetes version of a Cluster. Its provider sets it.
	K8sVersionLabel = openmcp.K8sVersionLabel
	// ProviderLabel is the label with the provider that is responsible for a Cluster or an AccessRequest.
	ProviderLabel = openmcp.ProviderLabel
	// ProfileLabel is the label with the profile of the Cluster of an AccessRequest.
	ProfileLabel = GroupName + "/profile"
	// ProviderInfoAnnotation is the annotation with the provider's information about a Cluster, which tables show.
	ProviderInfoAnnotation = openmcp.ProviderInfoAnnotation
	// DeleteWithoutRequestsLabel is the label of a Cluster that, with the value "true", allows the scheduler to delete the Cluster with its last
	// ClusterRequest.
	DeleteWithoutRequestsLabel = GroupName + "/delete-without-requests"
	// RandomizeClusterNameLabel is the label of a ClusterRequest that, with the value "true", gives the new Cluster a random name.
	RandomizeClusterNameLabel = GroupName + "/randomize-cluster-name"

	parentGroupName = "openmcp.cloud"
	// OperationAnnotation is the annotation that requests an operation from controllers.
	OperationAnnotation = parentGroupName + "/operation"
	// OperationAnnotationValueIgnore makes controllers ignore the object, including its status.
	OperationAnnotationValueIgnore = "ignore"
	// OperationAnnotationValueReconcile makes controllers reconcile the object again. They remove the annotation.
	OperationAnnotationValueReconcile = "reconcile"
	// ManagedByLabel is the label with the controller that created an object.
	ManagedByLabel = parentGroupName + "/managed-by"
	// ManagedPurposeLabel is the label with the purpose for which the controller created the object.
	ManagedPurposeLabel = parentGroupName + "/managed-purpose"
	// EnvironmentLabel is the label with the environment of the controller that created the object.
	EnvironmentLabel = parentGroupName + "/environment"
	// ClusterLabel is the label with the cluster of the platform that an object belongs to.
	ClusterLabel = parentGroupName + "/cluster"
	// OnboardingNameLabel is the label with the name of the corresponding object in the onboarding cluster.
	OnboardingNameLabel = parentGroupName + "/onboarding-name"
	// OnboardingNamespaceLabel is the label with the namespace of the corresponding object in the onboarding cluster.
	OnboardingNamespaceLabel = parentGroupName + "/onboarding-namespace"
	// TopologyLabel is the label with the name of the object of another cluster that this object represents.
	TopologyLabel = parentGroupName + "/topology"
	// TopologyNamespaceLabel is the label with the namespace of the object of another cluster that this object represents.
	TopologyNamespaceLabel = TopologyLabel + "-ns"
	// MetadataAnnotationLabelPrefix is the prefix of the labels and annotations of a ClusterRequest that are copied to its Cluster.
	MetadataAnnotationLabelPrefix = "metadata.open-control-plane.io/"
)

// Finalizers.
const (
	// ClusterRequestFinalizer is the finalizer of a ClusterRequest that is removed after its Cluster has been released.
	ClusterRequestFinalizer = GroupName + "/request"
	// RequestFinalizerOnClusterPrefix is the prefix of the finalizers of a Cluster that identify, by UID, the ClusterRequests that use it.
	RequestFinalizerOnClusterPrefix = "request." + GroupName + "/"
	// AccessFinalizer is the finalizer of a Cluster that is removed after all AccessRequests for it are gone, so that access is revoked while the
	// cluster still exists. Cluster providers wait for the finalizers of other controllers.
	AccessFinalizer = openmcp.AccessFinalizer
	// ClusterAccessFinalizer is the finalizer of the consumers of a ClusterRequest or AccessRequest.
	ClusterAccessFinalizer = GroupName + "/clusteraccess"
)

// Keys in the Secret of an AccessRequest.
const (
	// SecretKeyKubeconfig is the key of the kubeconfig.
	SecretKeyKubeconfig = "kubeconfig"
	// SecretKeyExpirationTimestamp is the key of the time at which the token expires, in seconds since 1970.
	SecretKeyExpirationTimestamp = "expirationTimestamp"
	// SecretKeyCreationTimestamp is the key of the time at which the token was created, in seconds since 1970.
	SecretKeyCreationTimestamp = "creationTimestamp"
	// SecretKeyClientID is the key of the ID of the OIDC client.
	SecretKeyClientID = "clientID"
	// SecretKeyHost is the key of the address of the API server.
	SecretKeyHost = "host"
	// SecretKeyCA is the key of the CA of the API server's certificate.
	SecretKeyCA = "ca.crt"
	// SecretKeyToken is the key of the token.
	SecretKeyToken = "token"
)

// Reasons of conditions.
const (
	// ReasonPlatformClusterInteractionProblem is set when requests to the hub fail.
	ReasonPlatformClusterInteractionProblem = "PlatformClusterInteractionProblem"
	// ReasonOnboardingClusterInteractionProblem is set when requests to the onboarding cluster fail.
	ReasonOnboardingClusterInteractionProblem = "OnboardingClusterInteractionProblem"
	// ReasonInvalidReference is set when a referenced object does not exist or cannot be used.
	ReasonInvalidReference = "InvalidReference"
	// ReasonConfigurationProblem is set when a configuration or a spec is incorrect.
	ReasonConfigurationProblem = "ConfigurationProblem"
	// ReasonInternalError is set when a program fails for a reason other than the request.
	ReasonInternalError = "InternalError"
	// ReasonClusterConflict is set when a Cluster of the name exists that the request cannot use.
	ReasonClusterConflict = "ClusterConflict"
	// ReasonWaitingForClusterRequest is set when a ClusterRequest is not granted yet.
	ReasonWaitingForClusterRequest = "WaitingForClusterRequest"
	// ReasonWaitingForClusterRequestDeletion is set when a ClusterRequest is not gone yet.
	ReasonWaitingForClusterRequestDeletion = "WaitingForClusterRequestDeletion"
	// ReasonWaitingForAccessRequest is set when an AccessRequest is not granted yet.
	ReasonWaitingForAccessRequest = "WaitingForAccessRequest"
	// ReasonWaitingForAccessRequestDeletion is set when an AccessRequest is not gone yet.
	ReasonWaitingForAccessRequestDeletion = "WaitingForAccessRequestDeletion"
	// ReasonWaitingForNamespaceDeletion is set when a namespace is not gone yet.
	ReasonWaitingForNamespaceDeletion = "WaitingForNamespaceDeletion"
	// ReasonWaitingForServices is set when services do not exist yet.
	ReasonWaitingForServices = "WaitingForServices"
	// ReasonWaitingForServiceDeletion is set when services are not gone yet.
	ReasonWaitingForServiceDeletion = "WaitingForServiceDeletion"
)
