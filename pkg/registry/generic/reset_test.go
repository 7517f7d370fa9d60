// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestKeepMeta_KeepsAllButThePreconditionsAndTheRecordOfManagers(t *testing.T) {
	old := &metav1.ObjectMeta{
		Name: "a", ResourceVersion: "1", UID: "u", Generation: 3, Labels: map[string]string{"a": "b"},
		Finalizers: []string{"x/y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "old"}},
	}
	updated := &metav1.ObjectMeta{
		Name: "b", ResourceVersion: "2", UID: "v", Generation: 4, Annotations: map[string]string{"a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "new"}},
	}
	want := old.DeepCopy()
	want.ResourceVersion, want.UID, want.ManagedFields = "2", "v", []metav1.ManagedFieldsEntry{{Manager: "new"}}
	KeepMeta(updated, old)
	if !equality.Semantic.DeepEqual(updated, want) {
		t.Errorf("got  %+v\nwant %+v", updated, want)
	}
	updated.Labels["a"] = "c"
	if old.Labels["a"] != "b" {
		t.Error("shares its labels with the old object, which may belong to the cache")
	}
}

func TestResetFields_AreTheSameInEveryVersion(t *testing.T) {
	got := ResetFields([]string{"g/v1", "g/v2"}, fieldpath.MakePathOrDie("status"))
	for _, version := range []fieldpath.APIVersion{"g/v1", "g/v2"} {
		if got[version] == nil || !got[version].Has(fieldpath.MakePathOrDie("status")) || got[version].Size() != 1 {
			t.Errorf("%s: %v", version, got[version])
		}
	}
	if len(got) != 2 {
		t.Errorf("got %v", got)
	}
}
