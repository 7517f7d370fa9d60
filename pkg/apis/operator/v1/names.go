// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

const (
	// KlusterletFinalizer protects a Klusterlet until its objects on the cluster that has the Klusterlet are deleted.
	KlusterletFinalizer = "operator.open-cluster-management.io/klusterlet-cleanup"
	// KlusterletHostedFinalizer protects a detached Klusterlet until its objects on the managed cluster are deleted.
	KlusterletHostedFinalizer = "operator.open-cluster-management.io/klusterlet-hosted-cleanup"
	// ClusterManagerFinalizer protects a ClusterManager until its objects are deleted.
	ClusterManagerFinalizer = "operator.open-cluster-management.io/cluster-manager-cleanup"

	// AnnotationEvictionTimestamp is the time since when the cluster of a Klusterlet or ClusterManager that is being deleted has been
	// unreachable, in RFC 3339 format.
	AnnotationEvictionTimestamp = "operator.open-cluster-management.io/managed-resources-eviction-timestamp"
	// ClusterAnnotationsKeyPrefix is the prefix of the annotations that an agent may set on its ManagedCluster.
	ClusterAnnotationsKeyPrefix = "agent.open-cluster-management.io"

	// LabelKlusterlet is the label of all objects that are created for a Klusterlet. Its value is the name of the Klusterlet.
	LabelKlusterlet = "createdByKlusterlet"
	// LabelClusterManager is the label of all objects that are created for a ClusterManager. Its value is the name of the ClusterManager.
	LabelClusterManager = "createdByClusterManager"
)

const (
	// DefaultAgentNamespace is the namespace of agents whose Klusterlet does not set one.
	DefaultAgentNamespace = "open-cluster-management-agent"
	// HubNamespace is the namespace of a hub's servers in the mode Default, and of their ServiceAccounts on every hub.
	HubNamespace = "clusterhub-system"

	// MaxKlusterletName is the maximum number of characters in the name of a Klusterlet. Names of Deployments, labels and ServiceAccounts are
	// derived from it.
	MaxKlusterletName = 40

	detachedAgentSuffix = "-open-cluster-management-agent"
	detachedHubSuffix   = "-open-cluster-management-hub"
)

// Secrets in the namespace of the pods. The user creates the first three, and the programs the others.
const (
	// BootstrapHubKubeconfig is the Secret with the kubeconfig with which an agent without an identity connects to its hub.
	BootstrapHubKubeconfig = "bootstrap-hub-kubeconfig"
	// ExternalManagedKubeconfig is the Secret with the kubeconfig of an admin of the managed cluster, in the modes in which the agent runs on
	// another cluster.
	ExternalManagedKubeconfig = "external-managed-kubeconfig"
	// ExternalHubKubeconfig is the Secret with the kubeconfig of an admin of the hub, in the modes in which its servers run on another
	// cluster.
	ExternalHubKubeconfig = "external-hub-kubeconfig"

	// HubKubeconfigSecret is the Secret with the state of the registration agent.
	HubKubeconfigSecret = "hub-kubeconfig-secret"
	// ExternalManagedKubeconfigRegistration is the Secret with the kubeconfig that is minted for the registration agent.
	ExternalManagedKubeconfigRegistration = "external-managed-kubeconfig-registration"
	// ExternalManagedKubeconfigWork is the Secret with the kubeconfig that is minted for the work agent.
	ExternalManagedKubeconfigWork = "external-managed-kubeconfig-work"
	// ExternalManagedKubeconfigAgent is the Secret with the kubeconfig that is minted for the single Deployment of the mode SingletonHosted.
	ExternalManagedKubeconfigAgent = "external-managed-kubeconfig-agent"
)

// Keys of these Secrets.
const (
	// KeyKubeconfig is the kubeconfig. All of these Secrets have it.
	KeyKubeconfig = "kubeconfig"
	// KeyToken is the token of a minted kubeconfig, which refers to it as a file in the same directory.
	KeyToken = "token"
	// KeyExpiration is the time at which the token expires, in RFC 3339 format.
	KeyExpiration = "expiration"
	// KeyServiceAccountNamespace is the namespace of the token's ServiceAccount.
	KeyServiceAccountNamespace = "serviceaccount_namespace"
	// KeyServiceAccountName is the name of the token's ServiceAccount.
	KeyServiceAccountName = "serviceaccount_name"
	// KeyServiceAccountUID is the UID of the token's ServiceAccount.
	KeyServiceAccountUID = "serviceaccount_uid"
)

// Mode returns where the agent runs. Clients of Open Cluster Management write an empty mode for the default.
func (k *Klusterlet) Mode() InstallMode { return orDefault(k.Spec.DeployOption.Mode) }

// IsDetached reports whether the agent runs on another cluster than the managed cluster.
func (k *Klusterlet) IsDetached() bool { return isDetached(k.Mode()) }

// IsSingleton reports whether both parts of the agent are in a single Deployment.
func (k *Klusterlet) IsSingleton() bool {
	return k.Mode() == InstallModeSingleton || k.Mode() == InstallModeSingletonHosted
}

// AgentNamespace returns the namespace of the agent's pods and Secrets on the cluster that has the Klusterlet.
func (k *Klusterlet) AgentNamespace() string {
	switch k.Mode() {
	case InstallModeDetached:
		return k.Name + detachedAgentSuffix
	case InstallModeHosted, InstallModeSingletonHosted:
		return k.Name
	default:
		return k.namespace()
	}
}

// ManagedNamespace returns the agent's namespace on the managed cluster, which contains its ServiceAccounts.
func (k *Klusterlet) ManagedNamespace() string {
	if k.Mode() == InstallModeDetached {
		return k.Name + detachedAgentSuffix
	}
	return k.namespace()
}

func (k *Klusterlet) namespace() string {
	if k.Spec.Namespace == "" {
		return DefaultAgentNamespace
	}
	return k.Spec.Namespace
}

// RegistrationDeployment returns the name of the Deployment of the registration agent, in modes with two Deployments.
func (k *Klusterlet) RegistrationDeployment() string { return k.Name + "-registration-agent" }

// WorkDeployment returns the name of the Deployment of the work agent, in modes with two Deployments.
func (k *Klusterlet) WorkDeployment() string { return k.Name + "-work-agent" }

// AgentDeployment returns the name of the single Deployment of the Singleton modes.
func (k *Klusterlet) AgentDeployment() string { return k.Name + "-agent" }

// RegistrationServiceAccount returns the name of the registration agent's ServiceAccounts, on either cluster.
func (k *Klusterlet) RegistrationServiceAccount() string { return k.Name + "-registration-sa" }

// WorkServiceAccount returns the name of the work agent's ServiceAccounts, on either cluster.
func (k *Klusterlet) WorkServiceAccount() string { return k.Name + "-work-sa" }

// AgentServiceAccount returns the name of the ServiceAccounts of the Singleton modes, on either cluster.
func (k *Klusterlet) AgentServiceAccount() string { return k.Name + "-agent-sa" }

// GetResourceRequirement returns the requests and limits of the containers.
func (k *Klusterlet) GetResourceRequirement() *ResourceRequirement { return k.Spec.ResourceRequirement }

// Mode returns where the servers run.
func (c *ClusterManager) Mode() InstallMode { return orDefault(c.Spec.DeployOption.Mode) }

// IsDetached reports whether the servers run on another cluster than the hub.
func (c *ClusterManager) IsDetached() bool { return isDetached(c.Mode()) }

// ServerNamespace returns the namespace of the servers' pods and Secrets on the cluster that has the ClusterManager.
func (c *ClusterManager) ServerNamespace() string {
	switch c.Mode() {
	case InstallModeDetached:
		return c.Name + detachedHubSuffix
	case InstallModeHosted:
		return c.Name
	default:
		return HubNamespace
	}
}

// MintedKubeconfig returns the name of the Secret with the hub's kubeconfig that is minted for a ServiceAccount.
func (c *ClusterManager) MintedKubeconfig(serviceAccount string) string {
	return serviceAccount + "-kubeconfig"
}

// GetResourceRequirement returns the requests and limits of the containers.
func (c *ClusterManager) GetResourceRequirement() *ResourceRequirement {
	return c.Spec.ResourceRequirement
}

func orDefault(mode InstallMode) InstallMode {
	if mode == "" {
		return InstallModeDefault
	}
	return mode
}

func isDetached(mode InstallMode) bool {
	switch mode {
	case InstallModeDetached, InstallModeHosted, InstallModeSingletonHosted:
		return true
	}
	return false
}
