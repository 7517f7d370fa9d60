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
	// ReasonKlusterletApplied is of Applied.
	ReasonKlusterletApplied = "KlusterletApplied"
	// ReasonKlusterletApplyFailed is of Applied.
	ReasonKlusterletApplyFailed = "KlusterletApplyFailed"
	// ReasonKlusterletCRDApplyFailed is of Applied.
	ReasonKlusterletCRDApplyFailed = "CRDApplyFailed"
	// ReasonManagedClusterResourceApplyFailed is of Applied.
	ReasonManagedClusterResourceApplyFailed = "ManagedClusterResourceApplyFailed"
	// ReasonManagementClusterResourceApplyFailed is of Applied.
	ReasonManagementClusterResourceApplyFailed = "ManagementClusterResourceApplyFailed"

	// ReasonKlusterletPrepareFailed is of ReadyToApply.
	ReasonKlusterletPrepareFailed = "KlusterletPrepareFailed"
	// ReasonKlusterletPrepared is of ReadyToApply.
	ReasonKlusterletPrepared = "KlusterletPrepared"

	// ReasonKlusterletGetDeploymentFailed is of Available and those of single Deployments.
	ReasonKlusterletGetDeploymentFailed = "GetDeploymentFailed"
	// ReasonKlusterletUnavailablePods is of Available and those of single Deployments.
	ReasonKlusterletUnavailablePods = "UnavailablePods"
	// ReasonKlusterletDeploymentsFunctional is of Available and those of single Deployments.
	ReasonKlusterletDeploymentsFunctional = "DeploymentsFunctional"
	// ReasonKlusterletNoAvailablePods is of Available and those of single Deployments.
	ReasonKlusterletNoAvailablePods = "NoAvailablePods"
	// ReasonKlusterletAvailable is of Available.
	ReasonKlusterletAvailable = "KlusterletAvailable"

	// ReasonHubConnectionFunctional is of HubConnectionDegraded.
	ReasonHubConnectionFunctional = "HubConnectionFunctional"
	// ReasonHubKubeConfigSecretMissing is of HubConnectionDegraded.
	ReasonHubKubeConfigSecretMissing = "HubKubeConfigSecretMissing"
	// ReasonHubKubeConfigMissing is of HubConnectionDegraded.
	ReasonHubKubeConfigMissing = "HubKubeConfigMissing"
	// ReasonHubKubeConfigError is of HubConnectionDegraded.
	ReasonHubKubeConfigError = "HubKubeConfigError"
	// ReasonClusterNameMissing is of HubConnectionDegraded.
	ReasonClusterNameMissing = "ClusterNameMissing"
	// ReasonHubKubeConfigUnauthorized is of HubConnectionDegraded.
	ReasonHubKubeConfigUnauthorized = "HubKubeConfigUnauthorized"
)

// Reasons of the conditions of ClusterManagers.
const (
	// ReasonClusterManagerApplied is of Applied.
	ReasonClusterManagerApplied = "ClusterManagerApplied"
	// ReasonRuntimeResourceApplyFailed is of Applied.
	ReasonRuntimeResourceApplyFailed = "RuntimeResourceApplyFailed"
	// ReasonServiceAccountSyncFailed is of Applied.
	ReasonServiceAccountSyncFailed = "ServiceAccountSyncFailed"
	// ReasonClusterManagerCRDApplyFailed is of Applied.
	ReasonClusterManagerCRDApplyFailed = "CRDApplyFailed"
	// ReasonWebhookApplyFailed is of Applied.
	ReasonWebhookApplyFailed = "WebhookApplyFailed"

	// ReasonClusterManagerPrepareFailed is of ReadyToApply, which Open Cluster Management has for Klusterlets only.
	ReasonClusterManagerPrepareFailed = "ClusterManagerPrepareFailed"
	// ReasonClusterManagerPrepared is of ReadyToApply.
	ReasonClusterManagerPrepared = "ClusterManagerPrepared"
	// ReasonClusterManagerAvailable is of Available.
	ReasonClusterManagerAvailable = "ClusterManagerAvailable"
	// ReasonClusterManagerUnavailable is of Available.
	ReasonClusterManagerUnavailable = "ClusterManagerUnavailable"

	// ReasonDeploymentRolling is of Progressing.
	ReasonDeploymentRolling = "ClusterManagerDeploymentRolling"
	// ReasonUpToDate is of Progressing.
	ReasonUpToDate = "ClusterManagerUpToDate"

	// ReasonGetRegistrationDeploymentFailed is of HubRegistrationDegraded.
	ReasonGetRegistrationDeploymentFailed = "GetRegistrationDeploymentFailed"
	// ReasonUnavailableRegistrationPod is of HubRegistrationDegraded.
	ReasonUnavailableRegistrationPod = "UnavailableRegistrationPod"
	// ReasonRegistrationFunctional is of HubRegistrationDegraded.
	ReasonRegistrationFunctional = "RegistrationFunctional"
	// ReasonGetPlacementDeploymentFailed is of HubPlacementDegraded.
	ReasonGetPlacementDeploymentFailed = "GetPlacementDeploymentFailed"
	// ReasonUnavailablePlacementPod is of HubPlacementDegraded.
	ReasonUnavailablePlacementPod = "UnavailablePlacementPod"
	// ReasonPlacementFunctional is of HubPlacementDegraded.
	ReasonPlacementFunctional = "PlacementFunctional"
)

// Reasons of the conditions that both kinds have.
const (
	// ReasonFeatureGatesAllValid is of ValidFeatureGates.
	ReasonFeatureGatesAllValid = "FeatureGatesAllValid"
	// ReasonInvalidFeatureGatesExisting is of ValidFeatureGates.
	ReasonInvalidFeatureGatesExisting = "InvalidFeatureGatesExisting"
	// ReasonFieldsIgnored is of FieldsIgnored.
	ReasonFieldsIgnored = "FieldsIgnored"
	// ReasonNoFieldsIgnored is of FieldsIgnored.
	ReasonNoFieldsIgnored = "NoFieldsIgnored"
)
