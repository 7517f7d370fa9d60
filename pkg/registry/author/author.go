// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package author records the user who last wrote the spec of an object.
package author

import (
	"context"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
)

// Stamp returns a Stamp function for kinds that record authors. It writes the author of the spec to the annotation. A client's value of the
// annotation is ignored: a write of a changed spec makes its user the author, and all other writes retain the author.
func Stamp[T metav1.Object](annotation string) func(ctx context.Context, updated, old T, changed bool) {
	return func(ctx context.Context, updated, old T, changed bool) {
		record, recorded := old.GetAnnotations()[annotation]
		if changed {
			record, recorded = of(ctx)
		}
		// A copy: the annotations may be those of the old object.
		annotations := maps.Clone(updated.GetAnnotations())
		delete(annotations, annotation)
		if recorded {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[annotation] = record
		}
		updated.SetAnnotations(annotations)
	}
}

// of returns the user of a request, as it is recorded, and false for a request without a user, for which nothing is allowed then.
func of(ctx context.Context) (string, bool) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return "", false
	}
	a := author.Author{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	for key, values := range who.GetExtra() {
		if key == user.CredentialIDKey {
			continue // No authorizer evaluates the credential's ID, and readers of the object need not know it.
		}
		if a.Extra == nil {
			a.Extra = map[string][]string{}
		}
		a.Extra[key] = values
	}
	data, err := json.Marshal(a)
	return string(data), err == nil
}
