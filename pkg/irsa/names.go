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

	longestRoleName = 64
)

// The tags of the roles of a managed cluster.
const (
	TagHubAccount     = "hub_cluster_account_id"
	TagHubCluster     = "hub_cluster_name"
	TagManagedAccount = "managed_cluster_account_id"
	TagManagedCluster = "managed_cluster_name"
)

// The tags of HubRole, and of its access entry, that say which cluster they belong to. An object of AWS is made together
// with its tags, so there is no moment without them.
const (
	// TagOwner is the name of the ManagedCluster.
	TagOwner = "clusterhub.dev/managed-cluster"
	// TagOwnerHub is the ARN of the hub's EKS cluster.
	TagOwnerHub = "clusterhub.dev/hub-cluster-arn"
)

func ownTagKeys() Values {
	return Values{TagHubAccount, TagHubCluster, TagManagedAccount, TagManagedCluster, TagOwner, TagOwnerHub}
}

// Suffix ends the names of a managed cluster's roles: a hash of the values of their tags. It tells roles apart and
// protects nothing. It leaves out the regions: two clusters of one account with one name have one suffix. The specification
// says that it is MD5, also where GODEBUG=fips140=only lets nothing be protected by that.
func Suffix(hubAccount, hubCluster, managedAccount, managedCluster string) (suffix string) {
	fips140.WithoutEnforcement(func() {
		sum := md5.Sum([]byte(strings.Join([]string{hubAccount, hubCluster, managedAccount, managedCluster}, "#")))
		suffix = hex.EncodeToString(sum[:])
	})
	return suffix
}

// Identity is a managed cluster in its relation to a hub.
type Identity struct {
	Hub     Cluster
	Managed Cluster
	// HubPath is the path of HubRole. The name of a role is unique in its account whatever the path is.
	HubPath RolePath
}

// NewIdentity relates a managed cluster to a hub, whose roles have no path.
func NewIdentity(hub, managed Cluster) (Identity, error) {
	if hub.Partition != managed.Partition {
		return Identity{}, fmt.Errorf("the cluster is in the AWS partition %s and the hub in %s: IAM allows no trust in another partition",
			managed.Partition, hub.Partition)
	}
	return Identity{Hub: hub, Managed: managed}, nil
}

// Suffix ends the names of the roles.
func (i Identity) Suffix() string {
	return Suffix(i.Hub.Account, i.Hub.Name, i.Managed.Account, i.Managed.Name)
}

// HubRole names the role in the hub's account by which the managed cluster comes to the hub.
func (i Identity) HubRole() string { return hubRolePrefix + i.Suffix() }

// HubRoleARN is the ARN of HubRole.
func (i Identity) HubRoleARN() string { return i.Hub.roleARN(i.HubPath, i.HubRole()) }

// MappedRoleARN is the ARN of HubRole as aws-auth has it: without its path, as STS tells of a session without the path of its role.
func (i Identity) MappedRoleARN() string { return i.Hub.roleARN("", i.HubRole()) }

// ManagedRole names the role of the agent in its own account.
func (i Identity) ManagedRole() string { return managedRolePrefix + i.Suffix() }

// ManagedRoleARN is the ARN of ManagedRole, which has no path.
func (i Identity) ManagedRoleARN() string { return i.Managed.roleARN("", i.ManagedRole()) }

// Tags are on HubRole and on ManagedRole. The trust policy of HubRole looks for those of ManagedRole.
func (i Identity) Tags() map[string]string {
	return map[string]string{
		TagHubAccount:     i.Hub.Account,
		TagHubCluster:     i.Hub.Name,
		TagManagedAccount: i.Managed.Account,
		TagManagedCluster: i.Managed.Name,
	}
}

// CreatorRole names the role as which the hub makes the roles of managed clusters. IAM has room for 31 characters of the hub's name:
// of a longer one it has the beginning, and a hash of the whole, which tells it from others with this beginning.
func CreatorRole(hub Cluster) string {
	name := hub.Name
	if most := longestRoleName - len(creatorRoleSuffix); len(name) > most {
		sum := sha256.Sum256([]byte(name))
		hash := "-" + hex.EncodeToString(sum[:4])
		name = name[:most-len(hash)] + hash
	}
	return name + creatorRoleSuffix
}

// CreatorRoleARN is the ARN of CreatorRole.
func CreatorRoleARN(hub Cluster) string { return hub.roleARN("", CreatorRole(hub)) }
