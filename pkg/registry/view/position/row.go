// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An object that can be seen by its name or by any of its sets has several rows in the cache: one in the range of its name, and one in that of each
// set. Clients get the first. The others are copies that are marked in two metadata fields that no stored object has: the set is in the namespace,
// and all sets of the object are in the selfLink. Names of sets have no comma. Plain removes the marks before objects are sent to clients.

// SetRow makes an object the row of a set.
func SetRow(object metav1.Object, set string, all []string) {
	object.SetNamespace(set)
	object.SetSelfLink(strings.Join(all, ","))
}

// RowSet returns the set of a row. It returns false for the row of a name.
func RowSet(row metav1.Object) (set string, ok bool) {
	set = row.GetNamespace()
	return set, set != ""
}

// RowSets returns all sets that the object of a set's row is in, in order.
func RowSets(row metav1.Object) []string { return strings.Split(row.GetSelfLink(), ",") }

// Plain converts a row to what clients get.
func Plain(row metav1.Object) {
	row.SetNamespace("")
	row.SetSelfLink("")
}
