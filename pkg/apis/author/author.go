// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package author has the record of who wrote a spec last. What the hub does for the object, its author has to be allowed to.
package author

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxLength is the maximum number of bytes of a record.
const MaxLength = 16 << 10

// Author is who wrote a spec last, as a SubjectAccessReview takes it. It is stored as JSON, in an annotation that only hub-apiserver
// writes.
type Author struct {
	// Username is the name of the user.
	Username string `json:"username"`
	// UID tells users of one name apart.
	UID string `json:"uid,omitempty"`
	// Groups are those of the user.
	Groups []string `json:"groups,omitempty"`
	// Extra has further attributes for authorizers.
	Extra map[string][]string `json:"extra,omitempty"`
}

// Validate bounds the record in this annotation, which the server has made of the user of the request. The old object of a new one is
// empty.
func Validate(annotation string, updated, old *metav1.ObjectMeta) field.ErrorList {
	record := updated.Annotations[annotation]
	if len(record) <= MaxLength || record == old.Annotations[annotation] {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(annotation), fmt.Sprintf(
		"the server records the author of the spec, and your record would have %d bytes, of at most %d: write it as a user with fewer groups",
		len(record), MaxLength))}
}
