// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The policies for objects that no work created, as in spec.manifestConfigs[].adoption of a work.
const (
	// AdoptAlways adopts the object.
	AdoptAlways = "Always"
	// AdoptIfNoDiff adopts the object if the manifest changes nothing in it.
	AdoptIfNoDiff = "IfNoDiff"
	// AdoptNever does not change the object.
	AdoptNever = "Never"
)

// Namespaces is the resource of namespaces.
var Namespaces = schema.GroupResource{Resource: "namespaces"}

// Acquisition is how a work acquired an object.
type Acquisition string

const (
	// Created means that the object was created for the work.
	Created Acquisition = "Created"
	// Adopted means that the object existed before, and that the work owns it now.
	Adopted Acquisition = "Adopted"
	// AdoptedToStay means that the object existed before, and that the work does not own it.
	AdoptedToStay Acquisition = "AdoptedToStay"
)

// NotAdopted reports that an object exists that the work must not adopt.
type NotAdopted struct {
	Target Target
	// Policy is the adoption policy of the manifest.
	Policy string
	// Field is the first field that the manifest would change, for IfNoDiff.
	Field string
}

func (e *NotAdopted) Error() string {
	if e.Policy == AdoptIfNoDiff {
		return fmt.Sprintf("%s exists, and does not belong to this work, whose adoption is %s: the manifest would change the field %s. "+
			"Set the field in the manifest to the value of the object, or set adoption to %s", e.Target, e.Policy, e.Field, AdoptAlways)
	}
	return fmt.Sprintf("%s exists, and does not belong to this work, whose adoption is %s: delete the object, remove the manifest, or set adoption to %s",
		e.Target, e.Policy, AdoptAlways)
}

// adopt decides whether the work may adopt an existing object, and returns how. It returns an empty Acquisition if the object belongs to the work
// already, or is shared with the work that created it.
func (w *write) adopt() (Acquisition, error) {
	switch {
	case w.have == nil:
		return Created, nil
	case w.Owner.Owns(w.have) || w.Known != "" && w.Known == w.have.GetUID():
		return "", nil
	case w.Adoption == AdoptNever:
		return "", &NotAdopted{Target: w.Target, Policy: AdoptNever}
	}
	w.onlyIfSame = w.Adoption == AdoptIfNoDiff
	// An object that another work created is shared: it is deleted with the last work that has it.
	if slices.ContainsFunc(w.have.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return w.Owner.isWork(ref) }) {
		return "", nil
	}
	// Deleting a namespace would delete all objects of others in it.
	if w.Adoption == "" && w.GroupResource() == Namespaces {
		w.Orphaned = true
	}
	if w.Orphaned {
		return AdoptedToStay, nil
	}
	return Adopted, nil
}
