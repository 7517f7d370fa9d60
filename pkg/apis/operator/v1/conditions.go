// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

const (
	// ConditionReadyToApply is True when the secrets of a Klusterlet or ClusterManager lead to its cluster, in the modes in which the pods
	// run elsewhere.
	ConditionReadyToApply = "ReadyToApply"
	// ConditionKlusterletApplied is True when all that the agent needs is there.
	ConditionKlusterletApplied = "Applied"
	// ConditionKlusterletAvailable is True when the agent runs. Its message says what is waited for: `kubectl get` shows it.
	ConditionKlusterletAvailable = "Available"
	// ConditionHubConnectionDegraded is True when the agent cannot work with the hub.
	ConditionHubConnectionDegraded = "HubConnectionDegraded"
	// ConditionRebootstrapProgressing is True while an agent with several hubs looks for the one to work with. Its message says which ones
	// were given up and why, and which one is tried. Klusterlets with one hub do not have it.
	ConditionRebootstrapProgressing = "RebootstrapProgressing"
	// ConditionRegistrationDesiredDegraded is True when not all pods of the registration agent run.
	ConditionRegistrationDesiredDegraded = "RegistrationDesiredDegraded"
	// ConditionWorkDesiredDegraded is True when not all pods of the work agent run.
	ConditionWorkDesiredDegraded = "WorkDesiredDegraded"

	// ConditionClusterManagerApplied is True when all of the hub is there.
	ConditionClusterManagerApplied = "Applied"
	// ConditionClusterManagerAvailable is True when the servers run and the hub serves its API. Its message says what is waited for:
	// `kubectl get` shows it. Open Cluster Management has no such condition for ClusterManagers.
	ConditionClusterManagerAvailable = "Available"
	// ConditionHubRegistrationDegraded is True when not all pods of hub-apiserver and of registration run.
	ConditionHubRegistrationDegraded = "HubRegistrationDegraded"
	// ConditionHubPlacementDegraded is True when not all pods that choose clusters run.
	ConditionHubPlacementDegraded = "HubPlacementDegraded"
	// ConditionProgressing is True while pods are made or replaced, until all of them are ready.
	ConditionProgressing = "Progressing"
	// ConditionMigrationSucceeded is about storage versions of Open Cluster Management's CustomResourceDefinitions.
	ConditionMigrationSucceeded = "MigrationSucceeded"

	// ConditionValidFeatureGates is True when all feature gates that are named are known.
	ConditionValidFeatureGates = "ValidFeatureGates"
	// ConditionFieldsIgnored is True when the spec has something that has no effect in its mode, such as the namespace of a detached
	// Klusterlet. Open Cluster Management has no such condition.
	ConditionFieldsIgnored = "FieldsIgnored"
)

// Reasons of the conditions of Klusterlets.
const (
	// ReasonKlusterletApplied of Applied: all that the agent needs is applied.
	ReasonKlusterletApplied = "KlusterletApplied"
	// ReasonKlusterletApplyFailed of Applied: something could not be applied; the message has the error.
	ReasonKlusterletApplyFailed = "KlusterletApplyFailed"
	// ReasonKlusterletCRDApplyFailed of Applied: the CustomResourceDefinitions could not be applied on the managed cluster.
	ReasonKlusterletCRDApplyFailed = "CRDApplyFailed"
	// ReasonManagedClusterResourceApplyFailed of Applied: something could not be applied on the managed cluster.
	ReasonManagedClusterResourceApplyFailed = "ManagedClusterResourceApplyFailed"
	// ReasonManagementClusterResourceApplyFailed of Applied: something could not be applied on the cluster that runs the pods.
	ReasonManagementClusterResourceApplyFailed = "ManagementClusterResourceApplyFailed"

	// ReasonKlusterletPrepareFailed of ReadyToApply: the kubeconfig of the managed cluster is missing, or is of no use; the message says why.
	ReasonKlusterletPrepareFailed = "KlusterletPrepareFailed"
	// ReasonKlusterletPrepared of ReadyToApply: there is a kubeconfig that leads to the managed cluster.
	ReasonKlusterletPrepared = "KlusterletPrepared"

	// ReasonKlusterletGetDeploymentFailed is the reason when a Deployment could not be read.
	ReasonKlusterletGetDeploymentFailed = "GetDeploymentFailed"
	// ReasonKlusterletUnavailablePods is the reason when not all pods of a Deployment are ready; the message has what they wait for.
	ReasonKlusterletUnavailablePods = "UnavailablePods"
	// ReasonKlusterletDeploymentsFunctional is the reason when all pods are ready.
	ReasonKlusterletDeploymentsFunctional = "DeploymentsFunctional"
	// ReasonKlusterletNoAvailablePods of Available: no pod of a Deployment is ready.
	ReasonKlusterletNoAvailablePods = "NoAvailablePods"
	// ReasonKlusterletAvailable of Available: the agent runs.
	ReasonKlusterletAvailable = "KlusterletAvailable"

	// ReasonHubConnectionFunctional of HubConnectionDegraded: the agent has an identity, and the hub takes it.
	ReasonHubConnectionFunctional = "HubConnectionFunctional"
	// ReasonHubKubeConfigSecretMissing of HubConnectionDegraded: the agent has no identity yet; the hub has to accept the cluster.
	ReasonHubKubeConfigSecretMissing = "HubKubeConfigSecretMissing"
	// ReasonHubKubeConfigMissing of HubConnectionDegraded: the Secret with the identity of the agent has no kubeconfig.
	ReasonHubKubeConfigMissing = "HubKubeConfigMissing"
	// ReasonHubKubeConfigError of HubConnectionDegraded: the kubeconfig of the agent cannot be read.
	ReasonHubKubeConfigError = "HubKubeConfigError"
	// ReasonClusterNameMissing of HubConnectionDegraded: the Secret with the identity of the agent does not name the cluster.
	ReasonClusterNameMissing = "ClusterNameMissing"
	// ReasonRebootstrapStarted of RebootstrapProgressing: the agent tries to join a hub.
	ReasonRebootstrapStarted = "RebootstrapStarted"
	// ReasonRebootstrapCompleted of RebootstrapProgressing: the agent works with its hub.
	ReasonRebootstrapCompleted = "RebootstrapCompleted"
	// ReasonHubKubeConfigUnauthorized of HubConnectionDegraded: the hub refuses the agent.
	ReasonHubKubeConfigUnauthorized = "HubKubeConfigUnauthorized"
)

// Reasons of the conditions of ClusterManagers.
const (
	// ReasonClusterManagerApplied of Applied: all of the hub is applied.
	ReasonClusterManagerApplied = "ClusterManagerApplied"
	// ReasonRuntimeResourceApplyFailed of Applied: something could not be applied; the message has the error.
	ReasonRuntimeResourceApplyFailed = "RuntimeResourceApplyFailed"
	// ReasonServiceAccountSyncFailed of Applied: a pod has no token for the hub; the message says why.
	ReasonServiceAccountSyncFailed = "ServiceAccountSyncFailed"
	// ReasonClusterManagerCRDApplyFailed of Applied: the CustomResourceDefinitions could not be applied on the hub.
	ReasonClusterManagerCRDApplyFailed = "CRDApplyFailed"
	// ReasonWebhookApplyFailed of Applied: what leads requests to hub-apiserver could not be applied.
	ReasonWebhookApplyFailed = "WebhookApplyFailed"

	// ReasonClusterManagerPrepareFailed is of ReadyToApply, which Open Cluster Management has for Klusterlets only.
	ReasonClusterManagerPrepareFailed = "ClusterManagerPrepareFailed"
	// ReasonClusterManagerPrepared of ReadyToApply: there is a kubeconfig that leads to the hub.
	ReasonClusterManagerPrepared = "ClusterManagerPrepared"
	// ReasonClusterManagerAvailable of Available: the servers run, and the hub serves its API.
	ReasonClusterManagerAvailable = "ClusterManagerAvailable"
	// ReasonClusterManagerUnavailable of Available: something does not run, or the hub does not serve its API; the message says what.
	ReasonClusterManagerUnavailable = "ClusterManagerUnavailable"

	// ReasonDeploymentRolling of Progressing: pods are made or replaced.
	ReasonDeploymentRolling = "ClusterManagerDeploymentRolling"
	// ReasonUpToDate of Progressing: all pods are as the spec says.
	ReasonUpToDate = "ClusterManagerUpToDate"

	// ReasonGetRegistrationDeploymentFailed of HubRegistrationDegraded: a Deployment could not be read.
	ReasonGetRegistrationDeploymentFailed = "GetRegistrationDeploymentFailed"
	// ReasonUnavailableRegistrationPod of HubRegistrationDegraded: a pod is not ready.
	ReasonUnavailableRegistrationPod = "UnavailableRegistrationPod"
	// ReasonRegistrationFunctional of HubRegistrationDegraded: all pods are ready.
	ReasonRegistrationFunctional = "RegistrationFunctional"
	// ReasonGetPlacementDeploymentFailed of HubPlacementDegraded: a Deployment could not be read.
	ReasonGetPlacementDeploymentFailed = "GetPlacementDeploymentFailed"
	// ReasonUnavailablePlacementPod of HubPlacementDegraded: a pod is not ready.
	ReasonUnavailablePlacementPod = "UnavailablePlacementPod"
	// ReasonPlacementFunctional of HubPlacementDegraded: all pods are ready.
	ReasonPlacementFunctional = "PlacementFunctional"
)

// Reasons of the conditions that both kinds have.
const (
	// ReasonFeatureGatesAllValid of ValidFeatureGates: all are known.
	ReasonFeatureGatesAllValid = "FeatureGatesAllValid"
	// ReasonInvalidFeatureGatesExisting of ValidFeatureGates: some are not; the message names them.
	ReasonInvalidFeatureGatesExisting = "InvalidFeatureGatesExisting"
	// ReasonFieldsIgnored of FieldsIgnored: some have no effect; the message names them.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonNoFieldsIgnored of FieldsIgnored: all have an effect.
	ReasonNoFieldsIgnored = "NoFieldsIgnored"
)
