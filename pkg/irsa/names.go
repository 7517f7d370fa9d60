// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"crypto/fips140"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	hubRolePrefix     = "ocm-hub-"
	managedRolePrefix = "ocm-managed-cluster-"
	creatorRoleSuffix = "_managed-cluster-identity-creator"

	maxRoleName = 64
)

// The tags of the roles of a managed cluster.
const (
	TagHubAccount     = "hub_cluster_account_id"
	TagHubCluster     = "hub_cluster_name"
	TagManagedAccount = "managed_cluster_account_id"
	TagManagedCluster = "managed_cluster_name"
)

// The tags of HubRole, and of its access entry, that identify the cluster that they belong to. AWS creates an object together with its tags, so it
// always has them.
const (
	// TagOwner is the name of the ManagedCluster.
	TagOwner = "clusterhub.dev/managed-cluster"
	// TagOwnerHub is the ARN of the hub's EKS cluster.
	TagOwnerHub = "clusterhub.dev/hub-cluster-arn"
)

func ownTagKeys() Values {
	return Values{TagHubAccount, TagHubCluster, TagManagedAccount, TagManagedCluster, TagOwner, TagOwnerHub}
}

// Suffix returns the suffix of the names of a managed cluster's roles: a hash of the values of their tags. It identifies roles and protects nothing.
// It does not include the regions: two clusters of one account with the same name have the same suffix. The specification requires MD5, even with
// GODEBUG=fips140=only, which forbids its use for security.
func Suffix(hubAccount, hubCluster, managedAccount, managedCluster string) (suffix string) {
	fips140.WithoutEnforcement(func() {
		sum := md5.Sum([]byte(strings.Join([]string{hubAccount, hubCluster, managedAccount, managedCluster}, "#")))
		suffix = hex.EncodeToString(sum[:])
	})
	return suffix
}

// Identity is a managed cluster in its relation to a hub.
type Identity struct {
	Hub     ClusterARN
	Managed ClusterARN
	// HubPath is the path of HubRole. The name of a role is unique in its account whatever the path is.
	HubPath RolePath
}

// NewIdentity returns the identity of a managed cluster for a hub whose roles have no path.
func NewIdentity(hub, managed ClusterARN) (Identity, error) {
	if hub.Partition != managed.Partition {
		return Identity{}, fmt.Errorf("the cluster is in the AWS partition %s and the hub in %s: IAM allows no trust in another partition",
			managed.Partition, hub.Partition)
	}
	return Identity{Hub: hub, Managed: managed}, nil
}

// Suffix returns the suffix of the names of the roles.
func (i Identity) Suffix() string {
	return Suffix(i.Hub.Account, i.Hub.Name, i.Managed.Account, i.Managed.Name)
}

// HubRole returns the name of the role in the hub's account by which the managed cluster accesses the hub.
func (i Identity) HubRole() string { return hubRolePrefix + i.Suffix() }

// HubRoleARN returns the ARN of HubRole.
func (i Identity) HubRoleARN() string { return i.Hub.roleARN(i.HubPath, i.HubRole()) }

// MappedRoleARN returns the ARN of HubRole for aws-auth: without its path, since STS identifies a session without the path of its role.
func (i Identity) MappedRoleARN() string { return i.Hub.roleARN("", i.HubRole()) }

// ManagedRole returns the name of the role of the agent in its own account.
func (i Identity) ManagedRole() string { return managedRolePrefix + i.Suffix() }

// ManagedRoleARN returns the ARN of ManagedRole, which has no path.
func (i Identity) ManagedRoleARN() string { return i.Managed.roleARN("", i.ManagedRole()) }

// Tags returns the tags of HubRole and of ManagedRole. The trust policy of HubRole requires those of ManagedRole.
func (i Identity) Tags() map[string]string {
	return map[string]string{
		TagHubAccount:     i.Hub.Account,
		TagHubCluster:     i.Hub.Name,
		TagManagedAccount: i.Managed.Account,
		TagManagedCluster: i.Managed.Name,
	}
}

// CreatorRole returns the name of the role with which the hub creates the roles of managed clusters. IAM has room for 31 characters of the hub's
// name: a longer one is cut, and extended by a hash of the whole name, which distinguishes it from others with the same beginning.
func CreatorRole(hub ClusterARN) string {
	name := hub.Name
	if most := maxRoleName - len(creatorRoleSuffix); len(name) > most {
		sum := sha256.Sum256([]byte(name))
		hash := "-" + hex.EncodeToString(sum[:4])
		name = name[:most-len(hash)] + hash
	}
	return name + creatorRoleSuffix
}

// CreatorRoleARN returns the ARN of CreatorRole.
func CreatorRoleARN(hub ClusterARN) string { return hub.roleARN("", CreatorRole(hub)) }
