// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

const (
	// hashLabel of a work is a hash of its set.
	hashLabel = work.ReplicaSetHashLabel
	// ownerAnnotation says it to people.
	ownerAnnotation = "work.open-cluster-management.io/manifestworkreplicaset-owner"
	// writtenAnnotation of a work is when its spec was written, and succeededAnnotation when it was first seen to be a success since.
	writtenAnnotation   = "work.clusterhub.dev/rollout-written"
	succeededAnnotation = "work.clusterhub.dev/rollout-succeeded"
)

// owner is a hash of a set, by which its works are found.
func owner(set types.NamespacedName) string { return ownerOf(set.Namespace + "." + set.Name) }

func ownerOf(label string) string {
	sum := sha256.Sum256([]byte(label))
	return hex.EncodeToString(sum[:16])
}

// ownerFrom is that of a work, or empty. The older label counts more: Open Cluster Management goes by it. Whoever labels a work without a
// placement has not meant it to be one of the set's, which would delete it.
func ownerFrom(labels map[string]string) string {
	if labels[work.PlacementLabel] == "" {
		return ""
	}
	if label := labels[work.ReplicaSetLabel]; label != "" {
		return ownerOf(label)
	}
	return labels[hashLabel]
}

// IsOfReplicaSet says that a work with these labels is kept by a ManifestWorkReplicaSet.
func IsOfReplicaSet(labels map[string]string) bool {
	_, label := labels[work.ReplicaSetLabel]
	_, hash := labels[hashLabel]
	return label || hash
}

// workName is the name of the work of a set for any cluster of a placement. It is always the same: two processes, or one that does not
// see what it has written, cannot make two works.
func workName(set types.NamespacedName, placement string) string {
	hash := namehash.NameHash(set.Namespace, set.Name, placement)
	begin := set.Name[:min(len(set.Name), work.MaxNameLength-len(hash)-1)]
	return strings.TrimRight(begin, "-.") + "-" + hash
}

// labelsOf are the labels of a work.
func labelsOf(set *workv1alpha1.ManifestWorkReplicaSet, placement string) map[string]string {
	labels := maps.Clone(set.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, work.ReplicaSetLabel)
	key := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
	labels[hashLabel] = owner(key)
	if label := set.Namespace + "." + set.Name; len(label) <= validation.LabelValueMaxLength {
		labels[work.ReplicaSetLabel] = label
	}
	labels[work.PlacementLabel] = placement
	return labels
}

// hasAll says that a map has all that another one has.
func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if now, there := have[k]; !there || now != v {
			return false
		}
	}
	return true
}
