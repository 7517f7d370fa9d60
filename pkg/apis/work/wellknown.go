// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/namehash"
)

const (
	// ReplicaSetLabel of a work has the namespace and the name of the ManifestWorkReplicaSet that it is of: <namespace>.<name>.
	ReplicaSetLabel = "work.open-cluster-management.io/manifestworkreplicaset"
	// ReplicaSetHashLabel of a work is a hash of that, where it is too long for a label. Open Cluster Management has announced it for all
	// works.
	ReplicaSetHashLabel = "work.open-cluster-management.io/ownerkey-hash"
	// PlacementLabel of a work of a ManifestWorkReplicaSet has the name of the placement that has chosen the cluster.
	PlacementLabel = "work.open-cluster-management.io/placementname"
	// ReplicaSetFinalizer keeps a ManifestWorkReplicaSet until its works are gone.
	ReplicaSetFinalizer = "work.open-cluster-management.io/manifest-work-cleanup"

	// CleanupPriorityAnnotation of a work says when it goes while its cluster is deleted: a number from 0 (the default) to 100,
	// lowest first.
	CleanupPriorityAnnotation = "open-cluster-management.io/cleanup-priority"

	// MaxNameLength is how long the name of a work may be: the object that the agent makes for it has 65 characters more.
	MaxNameLength = 188
)

// AuthorAnnotation of a ManifestWorkReplicaSet says who wrote its spec last, as JSON (pkg/apis/author): what its works do, the author has to be allowed
// to. Only hub-apiserver writes it.
const AuthorAnnotation = "work.clusterhub.dev/author"

const (
	// NilExecutorValidating is the feature gate, of hub-apiserver and hub-controller-manager, that takes a work without an executor for one that
	// is executed as AgentExecutor. Users need the permission for that then.
	NilExecutorValidating = "NilExecutorValidating"
	// AgentExecutor stands for the agent of a cluster, as Open Cluster Management names it. No executor has this name: its namespace is empty.
	AgentExecutor = "system:serviceaccount::klusterlet-work-sa"
)

// RevisionName is the name of the revision that keeps a template of a ManifestWorkReplicaSet: of that set, and of none of the same name
// before or after it.
func RevisionName(set string, uid types.UID, revision int64) string {
	return fmt.Sprintf("%s-%d-%s", set, revision, namehash.NameHash(string(uid)))
}
