// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is who something in a cluster was made for.
type Owner struct {
	// Labels are on everything of this owner, and on nothing else. Without labels, nothing is the owner's.
	Labels map[string]string
	// Origin are annotations that tell owners apart which follow each other and have the same labels.
	Origin map[string]string
}

// Owns is whether something has the labels.
func (o Owner) Owns(object client.Object) bool {
	have := object.GetLabels()
	for label, value := range o.Labels {
		if got, ok := have[label]; !ok || got != value {
			return false
		}
	}
	return len(o.Labels) > 0
}

// formers is whether something was made for a former owner with the same labels.
func (o Owner) formers(object client.Object) bool {
	have := object.GetAnnotations()
	for annotation, value := range o.Origin {
		if was, ok := have[annotation]; ok && was != value {
			return true
		}
	}
	return false
}

// mark makes something the owner's.
func (o Owner) mark(object client.Object) {
	if len(o.Labels) > 0 {
		object.SetLabels(labels.Merge(object.GetLabels(), o.Labels))
	}
	if len(o.Origin) > 0 {
		object.SetAnnotations(labels.Merge(object.GetAnnotations(), o.Origin))
	}
}

// NotOurs is the error of applying an object in the place of another owner's.
type NotOurs struct {
	Object ID
	Owner  Owner
}

func (e *NotOurs) Error() string {
	return fmt.Sprintf("it exists already and has another owner: delete it, or hand it over by adding the labels %s", labels.Set(e.Owner.Labels))
}

// Recreating is that an object is to be replaced, and the old one is still there.
type Recreating struct {
	Object ID
	// Why it cannot be changed.
	Why string
}

func (e *Recreating) Error() string { return e.Why + ", and waits until the old one is deleted" }
