// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	registry "github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
)

var _ rest.ResetFieldsStrategy = &REST{}

// GetResetFields implements rest.ResetFieldsStrategy. The effect of a write on a manager is computed in the version of that manager: that of the
// stored resource for all managers except the one that writes here.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	ignored := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(clusterviewv1.SchemeGroupVersion.String()): ignored,
		fieldpath.APIVersion(clusterv1.SchemeGroupVersion.String()):     ignored,
	}
}

// errNotCreated is the error of an apply to a missing object, by a user who may know that: elsewhere an apply creates it.
func errNotCreated(name string) error {
	err := apierrors.NewNotFound(resource.GroupResource, name)
	err.ErrStatus.Message += ": an apply here creates nothing, apply a new cluster as one of the " + registry.Kind.Resource.String()
	return err
}

// shownManagers converts the managers of a stored object to the version of this API, for an apply. The apply then has one version, like an apply to
// the stored object: converting the object for each manager would lose its empty maps, which have managers, too.
func shownManagers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	shown := slices.Clone(entries)
	for i := range shown {
		if shown[i].APIVersion == clusterv1.SchemeGroupVersion.String() {
			shown[i].APIVersion = clusterviewv1.SchemeGroupVersion.String()
		}
	}
	return shown
}

// storedConflicts converts the managers in the conflicts of an apply to the version in which the object is stored and read.
func storedConflicts(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &status) {
		return err
	}
	answer := status.Status()
	rename := strings.NewReplacer(" using "+clusterviewv1.SchemeGroupVersion.String(), " using "+clusterv1.SchemeGroupVersion.String()).Replace
	answer.Message = rename(answer.Message)
	if answer.Details != nil {
		details := *answer.Details
		details.Causes = slices.Clone(details.Causes)
		for i := range details.Causes {
			details.Causes[i].Message = rename(details.Causes[i].Message)
		}
		answer.Details = &details
	}
	return &apierrors.StatusError{ErrStatus: answer}
}

// storedManagers converts the managers of a write to those of the stored object: to its version, in which the fields have the same names. A manager
// that has written in both versions is merged.
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
