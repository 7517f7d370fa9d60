// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"encoding/json"
	"maps"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
)

// recordAuthor writes down whose the spec is. What a client says of it does not count: a write of another spec makes its user the
// author, and all other writes leave the author as it is.
func recordAuthor(ctx context.Context, s, old *work.ManifestWorkReplicaSet, changed bool) {
	record, recorded := old.Annotations[work.AuthorAnnotation]
	if changed {
		record, recorded = authorOf(ctx)
	}
	// A copy: the annotations may be those of the old object.
	annotations := maps.Clone(s.Annotations)
	delete(annotations, work.AuthorAnnotation)
	if recorded {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[work.AuthorAnnotation] = record
	}
	s.Annotations = annotations
}

// authorOf is the user of a request, as it is recorded. There is none for a request without a user: nobody is allowed anything then.
func authorOf(ctx context.Context) (string, bool) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return "", false
	}
	author := work.Author{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	for key, values := range who.GetExtra() {
		if key == user.CredentialIDKey {
			continue // No authorizer goes by which credential it was, and readers of the set need not know it.
		}
		if author.Extra == nil {
			author.Extra = map[string][]string{}
		}
		author.Extra[key] = values
	}
	data, err := json.Marshal(author)
	return string(data), err == nil
}
