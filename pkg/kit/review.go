// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/author"
)

// Allowed checks with a SubjectAccessReview whether the author of a spec has a permission, in all versions of the resource.
func Allowed(ctx context.Context, c client.Client, who *author.Author, what authorizationv1.ResourceAttributes) (bool, error) {
	what.Version = "*"
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Username, UID: who.UID, Groups: who.Groups, Extra: map[string]authorizationv1.ExtraValue{}, ResourceAttributes: &what,
	}}
	for k, v := range who.Extra {
		review.Spec.Extra[k] = v
	}
	if err := c.Create(ctx, review); err != nil {
		return false, fmt.Errorf("checking the rights of user %q: %w", who.Username, err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
