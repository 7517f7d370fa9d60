// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviews authenticates a client at an API server, and checks whether it may read metrics.
type reviews struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
}

func newReviews(config *rest.Config) (*reviews, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil // the guard has its own limits, which are independent of those of the program
	config.Timeout = askTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &reviews{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews()}, nil
}

func (r *reviews) review(ctx context.Context, token string) (verdict, error) {
	of, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return failed, fmt.Errorf("creating a tokenreview: %w", err)
	}
	// For an invalid token, the status has an error.
	if who := of.Status.User; !of.Status.Authenticated || who.Username == "" {
		return unknown, nil
	}
	who := of.Status.User
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: Path, Verb: "get"},
		User:                  who.Username, UID: who.UID, Groups: who.Groups, Extra: map[string]authorizationv1.ExtraValue{},
	}}
	for key, values := range who.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return failed, fmt.Errorf("creating a subjectaccessreview: %w", err)
	case may.Status.Allowed && !may.Status.Denied:
		return allowed, nil
	}
	return forbidden, nil
}
