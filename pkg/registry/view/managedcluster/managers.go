// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
)

// storedManagers are the managers of an update of what is shown, as the stored object has them: by its version, in which the fields have
// the same names. A manager that has written by both is one.
func storedManagers(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var merged []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.APIVersion == clusterviewv1.SchemeGroupVersion.String() {
			entry.APIVersion = clusterv1.SchemeGroupVersion.String()
		}
		at := slices.IndexFunc(merged, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation && other.APIVersion == entry.APIVersion &&
				other.Subresource == entry.Subresource
		})
		if at < 0 {
			merged = append(merged, entry)
			continue
		}
		fields, err := union(merged[at].FieldsV1, entry.FieldsV1)
		if err != nil {
			return nil, apierrors.NewBadRequest("metadata.managedFields: " + err.Error())
		}
		merged[at].FieldsV1 = fields
		if merged[at].Time.Before(entry.Time) {
			merged[at].Time = entry.Time
		}
	}
	return merged, nil
}

func union(all ...*metav1.FieldsV1) (*metav1.FieldsV1, error) {
	fields := &fieldpath.Set{}
	for _, one := range all {
		if one == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(one.GetRawReader()); err != nil {
			return nil, err
		}
		fields = fields.Union(set)
	}
	raw, err := fields.ToJSON()
	return metav1.NewFieldsV1(string(raw)), err
}
