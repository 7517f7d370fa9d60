// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/clusterhub/clusterhub/pkg/apis/openmcp"

// The names here are those of openMCP's own Go module, so that what is written for it needs another import only.

// Phases of clusters, and of everything else that is no request.
const (
	// StatusPhaseReady says that all conditions are True.
	StatusPhaseReady = "Ready"
	// StatusPhaseProgressing says that at least one condition is not True.
	StatusPhaseProgressing = "Progressing"
	// StatusPhaseTerminating says that the object is being deleted.
	StatusPhaseTerminating = "Terminating"
)

// Phases of requests. A request without a phase is pending, too.
const (
	// REQUEST_PENDING says that the request is neither granted nor denied yet.
	REQUEST_PENDING = "Pending"
	// REQUEST_GRANTED means that the request is granted.
	REQUEST_GRANTED = "Granted"
	// REQUEST_DENIED means that the request is denied.
	REQUEST_DENIED = "Denied"
)

// Usual purposes of clusters. Any other word will do.
const (
	// PURPOSE_PLATFORM is for the controllers of the platform.
	PURPOSE_PLATFORM = "platform"
	// PURPOSE_WORKLOAD is for the controllers of services.
	PURPOSE_WORKLOAD = "workload"
	// PURPOSE_ONBOARDING is for the resources that users begin with.
	PURPOSE_ONBOARDING = "onboarding"
	// PURPOSE_MCP is for managed control planes.
	PURPOSE_MCP = "mcp"
)

// Names of endpoints.
const (
	// APISERVER_ENDPOINT_EXTERNAL is how the API server is reached from outside.
	APISERVER_ENDPOINT_EXTERNAL = "apiserver-external"
	// APISERVER_ENDPOINT_INTERNAL is how the API server is reached from other clusters of the platform.
	APISERVER_ENDPOINT_INTERNAL = "apiserver-internal"
)

// Labels and annotations.
const (
	// K8sVersionLabel is the Kubernetes version that a Cluster has. Its provider sets it.
	K8sVersionLabel = openmcp.K8sVersionLabel
	// ProviderLabel is the provider that is responsible for a Cluster or an AccessRequest.
	ProviderLabel = openmcp.ProviderLabel
	// ProfileLabel is the profile of the Cluster that an AccessRequest is for.
	ProfileLabel = GroupName + "/profile"
	// ProviderInfoAnnotation is information of the provider about a Cluster, which tables show.
	ProviderInfoAnnotation = openmcp.ProviderInfoAnnotation
	// DeleteWithoutRequestsLabel, if its value is "true", lets the scheduler delete a Cluster with its last ClusterRequest.
	DeleteWithoutRequestsLabel = GroupName + "/delete-without-requests"
	// RandomizeClusterNameLabel, if its value is "true" on a ClusterRequest, gives the new Cluster a random name.
	RandomizeClusterNameLabel = GroupName + "/randomize-cluster-name"

	parentGroupName = "openmcp.cloud"
	// OperationAnnotation asks a controller for something once.
	OperationAnnotation = parentGroupName + "/operation"
	// OperationAnnotationValueIgnore lets controllers leave the object alone, even its status.
	OperationAnnotationValueIgnore = "ignore"
	// OperationAnnotationValueReconcile makes controllers reconcile the object again. They remove it.
	OperationAnnotationValueReconcile = "reconcile"
	// ManagedByLabel is the controller that made an object.
	ManagedByLabel = parentGroupName + "/managed-by"
	// ManagedPurposeLabel is the purpose for which the controller created it.
	ManagedPurposeLabel = parentGroupName + "/managed-purpose"
	// EnvironmentLabel is the environment of the controller that made it.
	EnvironmentLabel = parentGroupName + "/environment"
	// ClusterLabel is the cluster of the platform that an object belongs on.
	ClusterLabel = parentGroupName + "/cluster"
	// OnboardingNameLabel is the name of the object on the onboarding cluster that this one is for.
	OnboardingNameLabel = parentGroupName + "/onboarding-name"
	// OnboardingNamespaceLabel is the namespace of that object.
	OnboardingNamespaceLabel = parentGroupName + "/onboarding-namespace"
	// TopologyLabel is the name of the object of another cluster that this one stands for.
	TopologyLabel = parentGroupName + "/topology"
	// TopologyNamespaceLabel is the namespace of that object.
	TopologyNamespaceLabel = TopologyLabel + "-ns"
	// MetadataAnnotationLabelPrefix starts the labels and annotations of a ClusterRequest that its Cluster gets, too.
	MetadataAnnotationLabelPrefix = "metadata.open-control-plane.io/"
)

// Finalizers.
const (
	// ClusterRequestFinalizer keeps a ClusterRequest until its Cluster knows that it goes.
	ClusterRequestFinalizer = GroupName + "/request"
	// RequestFinalizerOnClusterPrefix starts the finalizers of a Cluster that name, by UID, the ClusterRequests that have it.
	RequestFinalizerOnClusterPrefix = "request." + GroupName + "/"
	// AccessFinalizer keeps a Cluster until no AccessRequest is for it, so that access can be taken back from a cluster that
	// is still there. Providers of clusters wait for the finalizers of others.
	AccessFinalizer = openmcp.AccessFinalizer
	// ClusterAccessFinalizer is the finalizer of the consumers of a ClusterRequest or AccessRequest.
	ClusterAccessFinalizer = GroupName + "/clusteraccess"
)

// Keys in the Secret of an AccessRequest.
const (
	// SecretKeyKubeconfig is the kubeconfig.
	SecretKeyKubeconfig = "kubeconfig"
	// SecretKeyExpirationTimestamp is when the token expires, in seconds since 1970.
	SecretKeyExpirationTimestamp = "expirationTimestamp"
	// SecretKeyCreationTimestamp is when the token was made, in seconds since 1970.
	SecretKeyCreationTimestamp = "creationTimestamp"
	// SecretKeyClientID is the OIDC client.
	SecretKeyClientID = "clientID"
	// SecretKeyHost is the address of the API server.
	SecretKeyHost = "host"
	// SecretKeyCA is the CA of the API server's certificate.
	SecretKeyCA = "ca.crt"
	// SecretKeyToken is the token.
	SecretKeyToken = "token"
)

// Reasons of conditions.
const (
	// ReasonPlatformClusterInteractionProblem says that the hub cannot be reached.
	ReasonPlatformClusterInteractionProblem = "PlatformClusterInteractionProblem"
	// ReasonOnboardingClusterInteractionProblem says that the onboarding cluster cannot be reached.
	ReasonOnboardingClusterInteractionProblem = "OnboardingClusterInteractionProblem"
	// ReasonInvalidReference says that an object refers to another one that is not there, or not of use.
	ReasonInvalidReference = "InvalidReference"
	// ReasonConfigurationProblem says that something is not set up rightly.
	ReasonConfigurationProblem = "ConfigurationProblem"
	// ReasonInternalError says that a fault of a program is in the way, and not one of the request.
	ReasonInternalError = "InternalError"
	// ReasonClusterConflict says that a Cluster of the name is another request's.
	ReasonClusterConflict = "ClusterConflict"
	// ReasonWaitingForClusterRequest says that a ClusterRequest is not granted yet.
	ReasonWaitingForClusterRequest = "WaitingForClusterRequest"
	// ReasonWaitingForClusterRequestDeletion says that a ClusterRequest is not gone yet.
	ReasonWaitingForClusterRequestDeletion = "WaitingForClusterRequestDeletion"
	// ReasonWaitingForAccessRequest says that an AccessRequest is not granted yet.
	ReasonWaitingForAccessRequest = "WaitingForAccessRequest"
	// ReasonWaitingForAccessRequestDeletion says that an AccessRequest is not gone yet.
	ReasonWaitingForAccessRequestDeletion = "WaitingForAccessRequestDeletion"
	// ReasonWaitingForNamespaceDeletion says that a namespace is not gone yet.
	ReasonWaitingForNamespaceDeletion = "WaitingForNamespaceDeletion"
	// ReasonWaitingForServices says that services are not there yet.
	ReasonWaitingForServices = "WaitingForServices"
	// ReasonWaitingForServiceDeletion says that services are not gone yet.
	ReasonWaitingForServiceDeletion = "WaitingForServiceDeletion"
)
