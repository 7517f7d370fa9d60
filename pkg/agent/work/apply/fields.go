// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
)

// takeOver makes a manager own, as applied, the fields that works have set in another way: by updates, or under another name, as long as no other
// work has the object. Then applying a manifest removes the fields that it no longer has.
func (w *write) takeOver(ctx context.Context, manager string) error {
	entries, managers := w.formerEntries(manager)
	if len(managers) == 0 {
		return nil
	}
	next := w.have.DeepCopy()
	next.SetManagedFields(entries)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(next, managers, manager)
	if err != nil || patch == nil {
		return err
	}
	next, err = w.resource.Patch(ctx, w.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err == nil {
		w.have = next
	}
	return err
}

// formerEntries returns the managedFields of the object, in which the entries that a manager takes over are marked as updates, and the managers of
// these entries.
func (w *write) formerEntries(manager string) (entries []metav1.ManagedFieldsEntry, managers sets.Set[string]) {
	sole := !slices.ContainsFunc(w.have.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID != w.Owner.UID && (isAppliedWork(ref) || isRecord(ref))
	})
	// If this work never owned the object, any client may have written an entry of such a name.
	sole = sole && w.Owner.Owns(w.have)
	entries, managers = w.have.GetManagedFields(), sets.New[string]()
	for i := range entries {
		e := &entries[i]
		updated, current := e.Operation == metav1.ManagedFieldsOperationUpdate, e.Manager == manager
		former, anothers := updated && current, !current && strings.HasPrefix(e.Manager, DefaultManager)
		if e.Subresource != "" || !former && (!anothers || !sole) {
			continue
		}
		e.Operation = metav1.ManagedFieldsOperationUpdate // csaupgrade takes over no other operation
		managers.Insert(e.Manager)
	}
	return entries, managers
}

// applies reports whether a manager has applied fields of an object.
func applies(object *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}
