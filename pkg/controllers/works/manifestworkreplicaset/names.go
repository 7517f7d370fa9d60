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
	// hashLabel has a hash of the set of a work.
	hashLabel = work.ReplicaSetHashLabel
	// ownerAnnotation has the name of the set, for users.
	ownerAnnotation = "work.open-cluster-management.io/manifestworkreplicaset-owner"
	// writtenAnnotation of a work is the time at which its spec was written, and succeededAnnotation the time at which it was first seen to succeed
	// after that.
	writtenAnnotation   = "work.clusterhub.dev/rollout-written"
	succeededAnnotation = "work.clusterhub.dev/rollout-succeeded"
)

// owner returns a hash of a set, by which its works are found.
func owner(set types.NamespacedName) string { return ownerOf(set.Namespace + "." + set.Name) }

func ownerOf(label string) string {
	sum := sha256.Sum256([]byte(label))
	return hex.EncodeToString(sum[:16])
}

// ownerFrom returns the owner of a work from its labels, or an empty string. The older label has precedence, as in Open Cluster Management. A work
// that has the label of a set but none of a placement does not belong to the set: it was labelled by mistake, and the set would delete it.
func ownerFrom(labels map[string]string) string {
	if labels[work.PlacementLabel] == "" {
		return ""
	}
	if label := labels[work.ReplicaSetLabel]; label != "" {
		return ownerOf(label)
	}
	return labels[hashLabel]
}

// IsOfReplicaSet reports whether a work with these labels belongs to a ManifestWorkReplicaSet.
func IsOfReplicaSet(labels map[string]string) bool {
	_, label := labels[work.ReplicaSetLabel]
	_, hash := labels[hashLabel]
	return label || hash
}

// workName returns the name of the work of a set for any cluster of a placement. It is deterministic, so that two processes, or one with a stale
// cache, cannot create two works.
func workName(set types.NamespacedName, placement string) string {
	hash := namehash.NameHash(set.Namespace, set.Name, placement)
	begin := set.Name[:min(len(set.Name), work.MaxNameLength-len(hash)-1)]
	return strings.TrimRight(begin, "-.") + "-" + hash
}

// labelsOf returns the labels of a work.
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

// hasAll reports whether a map has all entries of another map.
func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if now, there := have[k]; !there || now != v {
			return false
		}
	}
	return true
}
