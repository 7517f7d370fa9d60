// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

const (
	// KlusterletFinalizer keeps a Klusterlet until what was made for it on its own cluster is gone.
	KlusterletFinalizer = "operator.open-cluster-management.io/klusterlet-cleanup"
	// KlusterletHostedFinalizer keeps it until what was made on a managed cluster elsewhere is gone.
	KlusterletHostedFinalizer = "operator.open-cluster-management.io/klusterlet-hosted-cleanup"
	// ClusterManagerFinalizer keeps a ClusterManager until what was made for it is gone.
	ClusterManagerFinalizer = "operator.open-cluster-management.io/cluster-manager-cleanup"

	// AnnotationEvictionTimestamp is since when the managed cluster of a Klusterlet that is being deleted could not be reached, RFC 3339.
	AnnotationEvictionTimestamp = "operator.open-cluster-management.io/managed-resources-eviction-timestamp"
	// ClusterAnnotationsKeyPrefix is the prefix of the annotations that an agent may set on its ManagedCluster.
	ClusterAnnotationsKeyPrefix = "agent.open-cluster-management.io"

	// LabelKlusterlet is on all that was made for a Klusterlet, with its name.
	LabelKlusterlet = "createdByKlusterlet"
	// LabelClusterManager is on all that was made for a ClusterManager, with its name.
	LabelClusterManager = "createdByClusterManager"
)

const (
	// DefaultAgentNamespace is the namespace of agents whose Klusterlet names none.
	DefaultAgentNamespace = "open-cluster-management-agent"
	// HubNamespace is the namespace of a hub's servers in the mode Default, and on each hub that of their ServiceAccounts.
	HubNamespace = "clusterhub-system"

	// MaxKlusterletName is how many characters the name of a Klusterlet may have: Deployments, labels and ServiceAccounts are made of it.
	MaxKlusterletName = 40

	detachedAgentSuffix = "-open-cluster-management-agent"
	detachedHubSuffix   = "-open-cluster-management-hub"
)

// Secrets in the namespace of the pods. Those of the user come first.
const (
	// BootstrapHubKubeconfig is by which an agent without an identity finds its hub.
	BootstrapHubKubeconfig = "bootstrap-hub-kubeconfig"
	// ExternalManagedKubeconfig is the Secret with the kubeconfig of an admin of the managed cluster, in the modes in which the agent runs
	// elsewhere.
	ExternalManagedKubeconfig = "external-managed-kubeconfig"
	// ExternalHubKubeconfig is the Secret with the kubeconfig of an admin of the hub, in the modes in which its servers run elsewhere.
	ExternalHubKubeconfig = "external-hub-kubeconfig"

	// HubKubeconfigSecret is the state of the registration agent.
	HubKubeconfigSecret = "hub-kubeconfig-secret"
	// ExternalManagedKubeconfigRegistration is minted for the registration agent.
	ExternalManagedKubeconfigRegistration = "external-managed-kubeconfig-registration"
	// ExternalManagedKubeconfigWork is minted for the work agent.
	ExternalManagedKubeconfigWork = "external-managed-kubeconfig-work"
	// ExternalManagedKubeconfigAgent is minted for the one Deployment of the mode SingletonHosted.
	ExternalManagedKubeconfigAgent = "external-managed-kubeconfig-agent"
)

// Keys of these secrets.
const (
	// KeyKubeconfig is in all of them.
	KeyKubeconfig = "kubeconfig"
	// KeyToken is the token of a minted kubeconfig, which names it as a file beside it.
	KeyToken = "token"
	// KeyExpiration is until when the token is valid, RFC 3339.
	KeyExpiration = "expiration"
	// KeyServiceAccountNamespace is the namespace of the ServiceAccount of the token.
	KeyServiceAccountNamespace = "serviceaccount_namespace"
	// KeyServiceAccountName is its name.
	KeyServiceAccountName = "serviceaccount_name"
	// KeyServiceAccountUID is its UID.
	KeyServiceAccountUID = "serviceaccount_uid"
)

// Mode is where the agent runs. Open Cluster Management's clients write an empty one for the default.
func (k *Klusterlet) Mode() InstallMode { return orDefault(k.Spec.DeployOption.Mode) }

// IsDetached says whether the agent runs elsewhere than on the managed cluster.
func (k *Klusterlet) IsDetached() bool { return isDetached(k.Mode()) }

// IsSingleton says whether there is one Deployment for both parts of the agent.
func (k *Klusterlet) IsSingleton() bool {
	return k.Mode() == InstallModeSingleton || k.Mode() == InstallModeSingletonHosted
}

// AgentNamespace is the namespace of the agent's pods and secrets, on the cluster that has the Klusterlet.
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

// ManagedNamespace is the agent's namespace on the managed cluster. It is where its ServiceAccounts are there.
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

// RegistrationDeployment is the name of the Deployment of the registration agent, where there are two.
func (k *Klusterlet) RegistrationDeployment() string { return k.Name + "-registration-agent" }

// WorkDeployment is the name of the Deployment of the work agent, where there are two.
func (k *Klusterlet) WorkDeployment() string { return k.Name + "-work-agent" }

// AgentDeployment is the name of the one Deployment of the Singleton modes.
func (k *Klusterlet) AgentDeployment() string { return k.Name + "-agent" }

// RegistrationServiceAccount is the name of the registration agent's ServiceAccounts, on either cluster.
func (k *Klusterlet) RegistrationServiceAccount() string { return k.Name + "-registration-sa" }

// WorkServiceAccount is the name of the work agent's ServiceAccounts, on either cluster.
func (k *Klusterlet) WorkServiceAccount() string { return k.Name + "-work-sa" }

// AgentServiceAccount is the name of the ServiceAccounts of the Singleton modes, on either cluster.
func (k *Klusterlet) AgentServiceAccount() string { return k.Name + "-agent-sa" }

// GetResourceRequirement returns the requests and limits of the containers.
func (k *Klusterlet) GetResourceRequirement() *ResourceRequirement { return k.Spec.ResourceRequirement }

// Mode is where the servers run.
func (c *ClusterManager) Mode() InstallMode { return orDefault(c.Spec.DeployOption.Mode) }

// IsDetached says whether the servers run elsewhere than on the hub.
func (c *ClusterManager) IsDetached() bool { return isDetached(c.Mode()) }

// ServerNamespace is the namespace of the servers' pods and secrets, on the cluster that has the ClusterManager.
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

// MintedKubeconfig is the name of the secret with the kubeconfig of the hub that is minted for a ServiceAccount.
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
