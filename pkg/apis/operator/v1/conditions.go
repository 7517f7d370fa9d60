// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

const (
	// ConditionReadyToApply reports whether the Secrets of a Klusterlet or ClusterManager lead to its cluster. Only objects in the modes in
	// which the pods run on another cluster have it.
	ConditionReadyToApply = "ReadyToApply"
	// ConditionKlusterletApplied reports whether all objects that the agent needs are applied.
	ConditionKlusterletApplied = "Applied"
	// ConditionKlusterletAvailable reports whether the agent runs. Its message, which `kubectl get` shows, says what the agent waits for.
	ConditionKlusterletAvailable = "Available"
	// ConditionHubConnectionDegraded reports whether the agent is unable to work with the hub.
	ConditionHubConnectionDegraded = "HubConnectionDegraded"
	// ConditionRebootstrapProgressing reports whether an agent with several hubs is choosing one of them. Its message says which hubs the
	// agent gave up on and why, and which one it tries. Klusterlets with one hub do not have it.
	ConditionRebootstrapProgressing = "RebootstrapProgressing"
	// ConditionRegistrationDesiredDegraded reports whether some pods of the registration agent do not run.
	ConditionRegistrationDesiredDegraded = "RegistrationDesiredDegraded"
	// ConditionWorkDesiredDegraded reports whether some pods of the work agent do not run.
	ConditionWorkDesiredDegraded = "WorkDesiredDegraded"

	// ConditionClusterManagerApplied reports whether all objects of the hub are applied.
	ConditionClusterManagerApplied = "Applied"
	// ConditionClusterManagerAvailable reports whether the servers run and the hub serves its API. Its message, which `kubectl get` shows,
	// says what the hub waits for. Open Cluster Management has no such condition for ClusterManagers.
	ConditionClusterManagerAvailable = "Available"
	// ConditionHubRegistrationDegraded reports whether some pods of hub-apiserver or of registration do not run.
	ConditionHubRegistrationDegraded = "HubRegistrationDegraded"
	// ConditionHubPlacementDegraded reports whether some pods that choose clusters do not run.
	ConditionHubPlacementDegraded = "HubPlacementDegraded"
	// ConditionProgressing reports whether pods are being created or replaced. It is True until all of them are ready.
	ConditionProgressing = "Progressing"
	// ConditionMigrationSucceeded reports whether the storage versions of Open Cluster Management's CustomResourceDefinitions are migrated.
	// hub-operator does not set it.
	ConditionMigrationSucceeded = "MigrationSucceeded"

	// ConditionValidFeatureGates reports whether all feature gates in the spec are known.
	ConditionValidFeatureGates = "ValidFeatureGates"
	// ConditionFieldsIgnored reports whether the spec has values that have no effect in its mode, such as the namespace of a detached
	// Klusterlet. Open Cluster Management has no such condition.
	ConditionFieldsIgnored = "FieldsIgnored"
)

// Reasons of the conditions of Klusterlets.
const (
	// ReasonKlusterletApplied is set for Applied when all objects that the agent needs are applied.
	ReasonKlusterletApplied = "KlusterletApplied"
	// ReasonKlusterletApplyFailed is set for Applied when an object could not be applied. The message contains the error.
	ReasonKlusterletApplyFailed = "KlusterletApplyFailed"
	// ReasonKlusterletCRDApplyFailed is set for Applied when the CustomResourceDefinitions could not be applied to the managed cluster.
	// hub-operator does not set it.
	ReasonKlusterletCRDApplyFailed = "CRDApplyFailed"
	// ReasonManagedClusterResourceApplyFailed is set for Applied when an object could not be applied to the managed cluster.
	ReasonManagedClusterResourceApplyFailed = "ManagedClusterResourceApplyFailed"
	// ReasonManagementClusterResourceApplyFailed is set for Applied when an object could not be applied to the cluster that runs the pods.
	ReasonManagementClusterResourceApplyFailed = "ManagementClusterResourceApplyFailed"

	// ReasonKlusterletPrepareFailed is set for ReadyToApply when the kubeconfig of the managed cluster does not exist or cannot be used. The
	// message says why.
	ReasonKlusterletPrepareFailed = "KlusterletPrepareFailed"
	// ReasonKlusterletPrepared is set for ReadyToApply when a kubeconfig leads to the managed cluster.
	ReasonKlusterletPrepared = "KlusterletPrepared"

	// ReasonKlusterletGetDeploymentFailed is set for RegistrationDesiredDegraded and WorkDesiredDegraded when the Deployment does not
	// exist.
	ReasonKlusterletGetDeploymentFailed = "GetDeploymentFailed"
	// ReasonKlusterletUnavailablePods is set for RegistrationDesiredDegraded and WorkDesiredDegraded when not all pods of the Deployment are
	// ready. The message names the Deployment.
	ReasonKlusterletUnavailablePods = "UnavailablePods"
	// ReasonKlusterletDeploymentsFunctional is set for RegistrationDesiredDegraded and WorkDesiredDegraded when all pods are ready.
	ReasonKlusterletDeploymentsFunctional = "DeploymentsFunctional"
	// ReasonKlusterletNoAvailablePods is set for Available when no pod of a Deployment is ready. The message says what the agent waits for.
	ReasonKlusterletNoAvailablePods = "NoAvailablePods"
	// ReasonKlusterletAvailable is set for Available when the agent runs.
	ReasonKlusterletAvailable = "KlusterletAvailable"

	// ReasonHubConnectionFunctional is set for HubConnectionDegraded when the agent has an identity that the hub accepts.
	ReasonHubConnectionFunctional = "HubConnectionFunctional"
	// ReasonHubKubeConfigSecretMissing is set for HubConnectionDegraded when the agent has not started to register the cluster: the Secret for
	// its identity does not exist yet.
	ReasonHubKubeConfigSecretMissing = "HubKubeConfigSecretMissing"
	// ReasonHubKubeConfigMissing is set for HubConnectionDegraded when the Secret with the identity of the agent has no kubeconfig: the hub
	// must accept the cluster.
	ReasonHubKubeConfigMissing = "HubKubeConfigMissing"
	// ReasonHubKubeConfigError is set for HubConnectionDegraded when the kubeconfig of the agent cannot be read. hub-operator does not set it.
	ReasonHubKubeConfigError = "HubKubeConfigError"
	// ReasonClusterNameMissing is set for HubConnectionDegraded when the Secret with the identity of the agent does not name the cluster.
	// hub-operator does not set it.
	ReasonClusterNameMissing = "ClusterNameMissing"
	// ReasonRebootstrapStarted is set for RebootstrapProgressing when the agent tries to join a hub.
	ReasonRebootstrapStarted = "RebootstrapStarted"
	// ReasonRebootstrapCompleted is set for RebootstrapProgressing when the agent works with its hub.
	ReasonRebootstrapCompleted = "RebootstrapCompleted"
	// ReasonHubKubeConfigUnauthorized is set for HubConnectionDegraded when the hub refuses the agent.
	ReasonHubKubeConfigUnauthorized = "HubKubeConfigUnauthorized"
)

// Reasons of the conditions of ClusterManagers.
const (
	// ReasonClusterManagerApplied is set for Applied when all objects of the hub are applied.
	ReasonClusterManagerApplied = "ClusterManagerApplied"
	// ReasonRuntimeResourceApplyFailed is set for Applied when an object could not be applied. The message contains the error.
	ReasonRuntimeResourceApplyFailed = "RuntimeResourceApplyFailed"
	// ReasonServiceAccountSyncFailed is set for Applied when a pod has no token for the hub. The message says why.
	ReasonServiceAccountSyncFailed = "ServiceAccountSyncFailed"
	// ReasonClusterManagerCRDApplyFailed is set for Applied when the CustomResourceDefinitions could not be applied to the hub.
	// hub-operator does not set it.
	ReasonClusterManagerCRDApplyFailed = "CRDApplyFailed"
	// ReasonWebhookApplyFailed is set for Applied when the objects that route requests to hub-apiserver could not be applied.
	// hub-operator does not set it.
	ReasonWebhookApplyFailed = "WebhookApplyFailed"

	// ReasonClusterManagerPrepareFailed is set for ReadyToApply when the kubeconfig of the hub does not exist or cannot be used. The message
	// says why. Open Cluster Management sets ReadyToApply for Klusterlets only.
	ReasonClusterManagerPrepareFailed = "ClusterManagerPrepareFailed"
	// ReasonClusterManagerPrepared is set for ReadyToApply when a kubeconfig leads to the hub.
	ReasonClusterManagerPrepared = "ClusterManagerPrepared"
	// ReasonClusterManagerAvailable is set for Available when the servers run and the hub serves its API.
	ReasonClusterManagerAvailable = "ClusterManagerAvailable"
	// ReasonClusterManagerUnavailable is set for Available when a server does not run, or the hub does not serve its API. The message says
	// which.
	ReasonClusterManagerUnavailable = "ClusterManagerUnavailable"

	// ReasonDeploymentRolling is set for Progressing when pods are being created or replaced.
	ReasonDeploymentRolling = "ClusterManagerDeploymentRolling"
	// ReasonUpToDate is set for Progressing when all pods match the spec.
	ReasonUpToDate = "ClusterManagerUpToDate"

	// ReasonGetRegistrationDeploymentFailed is set for HubRegistrationDegraded when a Deployment could not be read.
	// hub-operator does not set it.
	ReasonGetRegistrationDeploymentFailed = "GetRegistrationDeploymentFailed"
	// ReasonUnavailableRegistrationPod is set for HubRegistrationDegraded when a pod is not ready.
	ReasonUnavailableRegistrationPod = "UnavailableRegistrationPod"
	// ReasonRegistrationFunctional is set for HubRegistrationDegraded when all pods are ready.
	ReasonRegistrationFunctional = "RegistrationFunctional"
	// ReasonGetPlacementDeploymentFailed is set for HubPlacementDegraded when a Deployment could not be read. hub-operator does not set it.
	ReasonGetPlacementDeploymentFailed = "GetPlacementDeploymentFailed"
	// ReasonUnavailablePlacementPod is set for HubPlacementDegraded when a pod is not ready.
	ReasonUnavailablePlacementPod = "UnavailablePlacementPod"
	// ReasonPlacementFunctional is set for HubPlacementDegraded when all pods are ready.
	ReasonPlacementFunctional = "PlacementFunctional"
)

// Reasons of the conditions that both kinds have.
const (
	// ReasonFeatureGatesAllValid is set for ValidFeatureGates when all feature gates are known.
	ReasonFeatureGatesAllValid = "FeatureGatesAllValid"
	// ReasonInvalidFeatureGatesExisting is set for ValidFeatureGates when some feature gates are unknown. The message names them.
	ReasonInvalidFeatureGatesExisting = "InvalidFeatureGatesExisting"
	// ReasonFieldsIgnored is set for FieldsIgnored when some values have no effect. The message names them.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonNoFieldsIgnored is set for FieldsIgnored when all values have an effect.
	ReasonNoFieldsIgnored = "NoFieldsIgnored"
)
