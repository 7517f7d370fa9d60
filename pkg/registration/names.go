// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration has what both sides of a registration share: the hub's controllers, and the agent of a managed cluster. Names, reasons and
// messages are those of Open Cluster Management where it has them, because its agents and command lines depend on them.
package registration

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Identities. A cluster's agents act as ClusterUser and are in ClusterGroup and ManagedClustersGroup.
const (
	// ManagedClustersGroup is the group of the agents of all clusters.
	ManagedClustersGroup = clusterPrefix + allClusters
	clusterPrefix        = "system:open-cluster-management:"
	// awsGroupPrefix is the prefix of the group by which an EKS access entry names a cluster: EKS allows no group that begins with "system:".
	awsGroupPrefix = "open-cluster-management:"
	// AWSManagedClustersGroup is ManagedClustersGroup for agents with an EKS access entry.
	AWSManagedClustersGroup = awsGroupPrefix + allClusters
	// allClusters is a name that no cluster may have.
	allClusters = "managed-clusters"
)

// ClusterGroup returns the group of the agents of one cluster.
func ClusterGroup(cluster string) string { return clusterPrefix + cluster }

// AWSGroup returns the group of the agents of one cluster with AWS IAM.
func AWSGroup(cluster string) string { return awsGroupPrefix + cluster }

// ClusterUser returns the user name of an agent of a cluster.
func ClusterUser(cluster, agent string) string { return clusterPrefix + cluster + ":" + agent }

// IsAgent reports whether a user is an agent of a cluster, of ours or of an addon. The prefix of an EKS group may also be that of a group of users,
// so it counts only for its own cluster: that is where it grants rights.
func IsAgent(user string, groups []string, cluster string) bool {
	return strings.HasPrefix(user, clusterPrefix) || slices.ContainsFunc(groups, func(group string) bool {
		return strings.HasPrefix(group, clusterPrefix) || group == AWSGroup(cluster)
	})
}

// ClusterOfAgent returns the cluster of the agent in these groups, of ours or of an addon, but not of an addon's agent whose groups name no
// cluster. Groups of users may have the prefix of those of EKS: an agent with an EKS access entry is in AWSManagedClustersGroup, too.
func ClusterOfAgent(groups []string) (cluster string, ok bool) {
	byAWS := slices.Contains(groups, AWSManagedClustersGroup)
	for _, group := range groups {
		name, found := strings.CutPrefix(group, clusterPrefix)
		if !found && byAWS {
			name, found = strings.CutPrefix(group, awsGroupPrefix)
		}
		if !found || name == allClusters {
			continue
		}
		// The groups of an addon's agents end in addon:A for those of all clusters, and in cluster:C:addon:A for those of one.
		if ofCluster, found := strings.CutPrefix(name, "cluster:"); found {
			name, _, _ = strings.Cut(ofCluster, ":")
		} else if strings.HasPrefix(name, "addon:") {
			continue
		}
		return name, true
	}
	return "", false
}

// AgentCluster reports whether a user is in the group of the agents of all clusters, and returns its cluster. It is strict, because rights depend
// on it: cluster is "" if there is any doubt. Each group with the prefix of agents must be that of the one cluster, and a user name with such a
// prefix must name it, too. Addons' agents are in neither group.
func AgentCluster(user string, groups []string) (cluster string, agent bool) {
	shared, prefix := ManagedClustersGroup, clusterPrefix
	if !slices.Contains(groups, shared) {
		shared, prefix = AWSManagedClustersGroup, awsGroupPrefix
		if !slices.Contains(groups, shared) {
			return "", false
		}
	}
	for _, group := range groups {
		if _, found := afterPrefix(group); !found || group == shared {
			continue
		}
		name, fits := strings.CutPrefix(group, prefix)
		if !fits || !isClusterName(name) || cluster != "" && cluster != name {
			return "", true
		}
		cluster = name
	}
	if rest, found := afterPrefix(user); found {
		if named, _, _ := strings.Cut(rest, ":"); named != cluster {
			return "", true
		}
	}
	return cluster, true
}

// afterPrefix returns the rest of a name after a prefix of agents.
func afterPrefix(name string) (rest string, found bool) {
	rest, found = strings.CutPrefix(name, clusterPrefix)
	if !found {
		rest, found = strings.CutPrefix(name, awsGroupPrefix)
	}
	return rest, found
}

func isClusterName(name string) bool {
	return len(validation.IsDNS1123Label(name)) == 0 && !slices.Contains(cluster.ReservedNames, name)
}

// Labels by which an agent reports where its cluster runs.
const (
	LabelRegion = cluster.ReservedLabelPrefixInfo + "region"
	LabelCloud  = cluster.ReservedLabelPrefixInfo + "cloud"
	LabelVendor = cluster.ReservedLabelPrefixInfo + "vendor"
)

// DefaultAgentLabels returns the keys of reserved labels that agents may set on their own cluster by default.
func DefaultAgentLabels() []string { return []string{LabelRegion, LabelCloud, LabelVendor} }

// The objects that the hub creates for a cluster.
const (
	// ClusterNameLabel is on the objects of a cluster: its namespace, its lease, its certificate requests.
	ClusterNameLabel = "open-cluster-management.io/cluster-name"
	// LeaseName is the Lease that an agent renews, in the cluster's namespace.
	LeaseName = "managed-cluster-lease"
	// AgentClusterRole and WorkClusterRole are the permissions of a cluster's agents in its namespace. All clusters share them.
	AgentClusterRole = "open-cluster-management:managedcluster:registration"
	WorkClusterRole  = "open-cluster-management:managedcluster:work"
	// WorkFinalizer protects the binding of WorkClusterRole while there are works of the cluster to be cleaned up.
	WorkFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"
	// Finalizer protects a cluster until what the hub has created for it is gone.
	Finalizer = "cluster.open-cluster-management.io/api-resource-cleanup"
)

// ClusterRole returns the name of the ClusterRole of one cluster, and of its ClusterRoleBinding.
func ClusterRole(cluster string) string { return "open-cluster-management:managedcluster:" + cluster }

// AgentRoleBinding returns the name of the RoleBinding to AgentClusterRole in the cluster's namespace.
func AgentRoleBinding(cluster string) string { return ClusterRole(cluster) + ":registration" }

// WorkRoleBinding returns the name of the RoleBinding to WorkClusterRole in the cluster's namespace.
func WorkRoleBinding(cluster string) string { return ClusterRole(cluster) + ":work" }

// Conditions of a ManagedCluster: types, and each with its reasons and messages.
const (
	ConditionHubAccepted = "HubAcceptedManagedCluster" // the hub has accepted the cluster
	ReasonAccepted       = "HubClusterAdminAccepted"   // an admin, or a user who may, has accepted it, and it has its rights
	MessageAccepted      = "Accepted by hub cluster admin"
	ReasonDenied         = "HubClusterAdminDenied" // it was not accepted, or was denied after that, and has no rights
	MessageDenied        = "Denied by hub cluster admin"
	// ReasonError reports that the hub could not create or delete what a cluster needs; the message says why.
	ReasonError = "Error"
	// ReasonNamespaceTerminating reports that the namespace of an accepted cluster was deleted: it is created again once it is gone. The message
	// says what it waits for.
	ReasonNamespaceTerminating = "NamespaceTerminating"

	ConditionJoined = "ManagedClusterJoined" // the agent of the cluster has connected with the identity that the hub granted
	ReasonJoined    = "ManagedClusterJoined" // the agent has joined
	MessageJoined   = "Managed cluster joined"

	ConditionAvailable           = "ManagedClusterConditionAvailable" // the agent renews its lease, and the API server of the cluster responds to it. Unknown: the lease is not renewed
	ReasonAvailable              = "ManagedClusterAvailable"          // the API server of the cluster reports that it is healthy
	MessageAvailable             = "Managed cluster is available"
	ReasonKubeAPIServerUnhealthy = "ManagedClusterKubeAPIServerUnavailable" // the agent is running, but the API server of the cluster does not respond to it, or is not healthy
	ReasonLeaseUpdateStopped     = "ManagedClusterLeaseUpdateStopped"       // the agent has not renewed its lease for five times its duration
	MessageLeaseUpdateStopped    = "Registration agent stopped updating its lease."

	ConditionClockSynced = "ManagedClusterConditionClockSynced" // whether the clock of the agent is in sync with that of the hub
	ReasonClockSynced    = "ManagedClusterClockSynced"          // the clocks are in sync
	ReasonClockOutOfSync = "ManagedClusterClockOutOfSync"       // the clocks are not in sync: certificates and leases are not reliable

	ConditionCertificateRotated = "ClusterCertificateRotated"     // the last renewal of the certificate of the agent
	ReasonCertificateUpdated    = "ClientCertificateUpdated"      // the agent has a new certificate
	ReasonCertificateFailed     = "ClientCertificateUpdateFailed" // the agent has no new certificate; the message says why

	// ConditionRequestWaits is True while an admin must decide on a certificate request of the cluster; the message says why.
	ConditionRequestWaits = "ClientCertificateRequestWaits"
	ReasonRequestWaits    = "LeftToAdmin" // the hub does not approve the request by itself
	ReasonNoRequestWaits  = "NoneWaits"   // no request waits

	// ConditionDeleting is False while a cluster that is being deleted waits for something; the message says for what. A cluster that waits for
	// nothing of the hub has no such condition, or one that is True.
	ConditionDeleting       = "Deleting"
	ReasonResourceRemaining = "ResourceRemaining" // something must be deleted first; the message says what
	ReasonNoResource        = "NoResource"        // nothing is left
	MessageHubRemains       = "The hub is deleting the objects that it created for the cluster."
	MessageNoResource       = "The hub has deleted all objects that it created for the cluster."
)

// Taints that the hub sets on clusters.
const (
	TaintUnavailable = "cluster.open-cluster-management.io/unavailable"
	TaintUnreachable = "cluster.open-cluster-management.io/unreachable"
)

// Annotations of a ManagedCluster.
const (
	// AgentAnnotationPrefix is the prefix of the annotations that an agent may be configured to set on its cluster.
	AgentAnnotationPrefix = "agent.open-cluster-management.io/"
	// AnnotationManagedClusterARN is the ARN of the EKS cluster that registers by AWS IAM.
	AnnotationManagedClusterARN = "agent.open-cluster-management.io/managed-cluster-arn"
	// AnnotationManagedClusterARNOfSeed is the same, as the specification of the registration spells it.
	AnnotationManagedClusterARNOfSeed = "eks-managed-cluster-arn"
	// AnnotationRoleSuffix is the suffix that agents of upstream report for the names of their IAM roles. The hub computes it.
	AnnotationRoleSuffix = "agent.open-cluster-management.io/managed-cluster-iam-role-suffix"
	// AnnotationAutoAccepted has the time at which a cluster was accepted without an admin.
	AnnotationAutoAccepted = "open-cluster-management.io/automatically-accepted-on"
	// AnnotationSkipClockCheck disables the comparison of a cluster's clock with the hub's.
	AnnotationSkipClockCheck = "registration.open-cluster-management.io/skip-clock-sync-check"
	// AnnotationAcceptedAt has the time (RFC 3339) at which the cluster was accepted. Only hub-apiserver writes it.
	AnnotationAcceptedAt = cluster.AcceptedAtAnnotation
	// AnnotationAgentKey is the SHA-256 of the public key (SubjectPublicKeyInfo, DER), in hex, with which the agent that created the cluster will
	// request its first certificate. So no other holder of a bootstrap token can request one in its place. The value at the time of the acceptance
	// counts.
	AnnotationAgentKey = "registration.clusterhub.dev/agent-key-sha256"
)

// agentAnnotations are the annotations with AgentAnnotationPrefix that the hub uses when it accepts a cluster.
var agentAnnotations = []string{AnnotationManagedClusterARN, AnnotationRoleSuffix}

// IsHubAnnotation reports whether the hub, or another program of it, may trust an annotation of a ManagedCluster: all in the domains of the hub,
// except those that agents set on their own cluster.
func IsHubAnnotation(key string) bool {
	if key == AnnotationManagedClusterARNOfSeed || slices.Contains(agentAnnotations, key) {
		return true
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, hub := range []string{"open-cluster-management.io", "clusterhub.dev"} {
		if domain == hub || strings.HasSuffix(domain, "."+hub) {
			return !strings.HasPrefix(key, AgentAnnotationPrefix)
		}
	}
	return false
}

// The secret in which an agent stores its identity, on its own cluster, and its keys.
const (
	HubKubeconfigSecret = "hub-kubeconfig-secret"
	KeyKubeconfig       = "kubeconfig"
	KeyClusterName      = "cluster-name"
	KeyAgentName        = "agent-name"
	KeyTLSCert          = "tls.crt"
	KeyTLSKey           = "tls.key"
	// KeyRefusal is the reason why the hub refuses the agent, for users who see the secret and not the hub. It is one of the refusals below, or
	// missing while the hub does not refuse the agent.
	KeyRefusal = "hub-refusal"

	// RefusalNotAccepted: the hub does not accept the cluster, or not any more.
	RefusalNotAccepted = "NotAccepted"
	// RefusalNoCluster: the hub does not let the agent see its ManagedCluster. Usually that was deleted.
	RefusalNoCluster = "NoCluster"
	// RefusalUnknown: the hub does not know the agent's identity.
	RefusalUnknown = "UnknownIdentity"

	// BootstrapSecret has the kubeconfig by which an agent creates its cluster, under KeyKubeconfig.
	BootstrapSecret = "bootstrap-hub-kubeconfig"
	// AgentNamespace is the namespace of an agent.
	AgentNamespace = "open-cluster-management-agent"
	// AgentServiceAccount is the ServiceAccount of an agent on its own cluster. The trust policies of AWS name it.
	AgentServiceAccount = "klusterlet-registration-sa"
)

// Registration by certificate.
const (
	// SignerName is the signer of the certificates of agents.
	SignerName = "kubernetes.io/kube-apiserver-client"
	// BootstrapUserPrefix is the prefix of the names of users of bootstrap tokens.
	BootstrapUserPrefix = "system:bootstrap:"
	// BootstrapServiceAccount is the user of clusteradm's bootstrap token.
	BootstrapServiceAccount = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
	// RegisterGroup is the API group under which upstream's roles grant rights on registration.
	RegisterGroup = "register.open-cluster-management.io"
)
