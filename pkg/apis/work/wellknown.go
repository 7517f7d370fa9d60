// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/namehash"
)

const (
	// ReplicaSetLabel is the label of a work with the namespace and the name of its ManifestWorkReplicaSet: <namespace>.<name>.
	ReplicaSetLabel = "work.open-cluster-management.io/manifestworkreplicaset"
	// ReplicaSetHashLabel is the label of a work with a hash of the value of ReplicaSetLabel, if that is too long for a label. Open Cluster
	// Management has announced it for all works.
	ReplicaSetHashLabel = "work.open-cluster-management.io/ownerkey-hash"
	// PlacementLabel is the label of a work of a ManifestWorkReplicaSet with the name of the placement that selected the cluster.
	PlacementLabel = "work.open-cluster-management.io/placementname"
	// ReplicaSetFinalizer is the finalizer of a ManifestWorkReplicaSet that is removed after its works are gone.
	ReplicaSetFinalizer = "work.open-cluster-management.io/manifest-work-cleanup"

	// CleanupPriorityAnnotation is the annotation of a work that defines the order in which works are deleted when their cluster is deleted: a number
	// from 0 (the default) to 100, lowest first.
	CleanupPriorityAnnotation = "open-cluster-management.io/cleanup-priority"

	// MaxNameLength is the maximum length of the name of a work: the object that the agent creates for it has 65 characters more.
	MaxNameLength = 188
)

// AuthorAnnotation is the annotation of a ManifestWorkReplicaSet with the last author of its spec, as JSON (pkg/apis/author). The works can do only
// what the author may do. Only hub-apiserver writes it.
const AuthorAnnotation = "work.clusterhub.dev/author"

const (
	// NilExecutorValidating is the feature gate, of hub-apiserver and hub-controller-manager, that treats a work without an executor as one whose
	// executor is AgentExecutor: users need the permission to execute as it.
	NilExecutorValidating = "NilExecutorValidating"
	// AgentExecutor represents the agent of a cluster, by the name that Open Cluster Management uses. No executor can have this name, since its
	// namespace is empty.
	AgentExecutor = "system:serviceaccount::klusterlet-work-sa"
)

// RevisionName returns the name of the revision with a template of a ManifestWorkReplicaSet. It differs from the names for other replica sets that
// had the same name.
func RevisionName(set string, uid types.UID, revision int64) string {
	return fmt.Sprintf("%s-%d-%s", set, revision, namehash.NameHash(string(uid)))
}
