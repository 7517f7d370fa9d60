// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"slices"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Annotations of the ClusterRole of a cluster: what the hub remembers of its acceptance, where the cluster's agent cannot
// write.
const (
	// AnnotationDriver names the driver by which the cluster was accepted, AnnotationRecord has the driver's record, and
	// AnnotationClusterUID the UID of the ManagedCluster. They are written before anything is granted, and removed after all
	// of it has been revoked.
	AnnotationDriver     = "registration.clusterhub.dev/driver"
	AnnotationRecord     = "registration.clusterhub.dev/record"
	AnnotationClusterUID = "registration.clusterhub.dev/cluster-uid"
	// AnnotationGranted has the time (RFC 3339) at which all of it had been granted.
	AnnotationGranted = "registration.clusterhub.dev/granted"
	// AnnotationRevoking says that the record is being revoked: it has to be, to the end, whatever is wished meanwhile.
	AnnotationRevoking = "registration.clusterhub.dev/revoking"
)

const (
	// AnnotationMade is on namespaces that the hub has made, and so may remove. Its value is the name of the cluster.
	AnnotationMade = "registration.clusterhub.dev/made-for"
	// InspectorClusterRole lists everything. The hub binds itself to it in a cluster's namespace, once the cluster is gone,
	// to see whether anything is left in it.
	InspectorClusterRole = "clusterhub:cluster-namespace-inspector"
	// InspectorRoleBinding names that binding.
	InspectorRoleBinding = "clusterhub:cluster-namespace-inspector"
)

// CheckName refuses the names that no cluster can be registered by. The hub's API refuses them too: this is for clusters
// that were stored by other means.
func CheckName(name string) error {
	if slices.Contains(cluster.ReservedNames, name) {
		return fmt.Errorf("no cluster can be accepted under the name %q: roles or groups that all clusters share have it; "+
			"join it under another name", name)
	}
	return nil
}
