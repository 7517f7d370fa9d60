// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner identifies for whom an object was created.
type Owner struct {
	// Labels are on all objects of this owner, and on no others. Without labels, the owner owns nothing.
	Labels map[string]string
	// Origin has annotations that distinguish successive owners with the same labels.
	Origin map[string]string
}

// Owns reports whether an object has the labels.
func (o Owner) Owns(object client.Object) bool {
	have := object.GetLabels()
	for label, value := range o.Labels {
		if got, ok := have[label]; !ok || got != value {
			return false
		}
	}
	return len(o.Labels) > 0
}

// formers reports whether an object was created for a previous owner with the same labels.
func (o Owner) formers(object client.Object) bool {
	have := object.GetAnnotations()
	for annotation, value := range o.Origin {
		if was, ok := have[annotation]; ok && was != value {
			return true
		}
	}
	return false
}

// mark sets the owner of an object.
func (o Owner) mark(object client.Object) {
	if len(o.Labels) > 0 {
		object.SetLabels(labels.Merge(object.GetLabels(), o.Labels))
	}
	if len(o.Origin) > 0 {
		object.SetAnnotations(labels.Merge(object.GetAnnotations(), o.Origin))
	}
}

// NotOurs is the error of applying an object in place of one with a different owner.
type NotOurs struct {
	Object ID
	Owner  Owner
}

func (e *NotOurs) Error() string {
	return fmt.Sprintf("it already exists and has another owner: delete it, or transfer it by adding the labels %s", labels.Set(e.Owner.Labels))
}

// Recreating reports that an object must be replaced, and the old one still exists.
type Recreating struct {
	Object ID
	// Why is the reason why it cannot be updated.
	Why string
}

func (e *Recreating) Error() string { return e.Why + ", and waits until the old one is deleted" }
