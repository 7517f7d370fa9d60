// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ResetFields tells server-side apply, for each version that is served, which fields a strategy ignores.
func ResetFields(versions []string, paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	result := make(map[fieldpath.APIVersion]*fieldpath.Set, len(versions))
	for _, v := range versions {
		result[fieldpath.APIVersion(v)] = fieldpath.NewSet(paths...)
	}
	return result
}

// KeepMeta makes the metadata of an update that of the old object, except for the record of who manages which field.
func KeepMeta(updated, old *metav1.ObjectMeta) {
	managed := updated.ManagedFields
	// The version and the UID are the client's preconditions, not fields that it changes.
	version, uid := updated.ResourceVersion, updated.UID
	old.DeepCopyInto(updated)
	updated.ManagedFields = managed
	updated.ResourceVersion, updated.UID = version, uid
}
