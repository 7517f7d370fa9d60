// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import rbacv1 "k8s.io/api/rbac/v1"

// olderPrefix is the prefix of the annotations in which older hubs stored the record, on the ClusterRole of the cluster.
const olderPrefix = "registration.clusterhub.dev/"

// HasLegacy reports whether a ClusterRole has the record of an older hub.
func HasLegacy(role *rbacv1.ClusterRole) bool {
	for _, key := range keys {
		if _, ok := role.Annotations[olderPrefix+key]; ok {
			return true
		}
	}
	return false
}

// On returns the record of an older hub from a ClusterRole.
func On(role *rbacv1.ClusterRole) Record { return read(role.Annotations, olderPrefix) }

// RemoveLegacy removes the record of an older hub from a ClusterRole.
func RemoveLegacy(role *rbacv1.ClusterRole) {
	for _, key := range keys {
		delete(role.Annotations, olderPrefix+key)
	}
}
