// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Listen calls heard with the result of requests to the hub: nil if it responds, and otherwise why it does not. A response that the hub does not know
// the client is passed for every request, and other results only for requests that read.
func Listen(config *rest.Config, heard func(error)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &listener{next, heard} })
}

type listener struct {
	http.RoundTripper
	heard func(error)
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	reads := request.Method == http.MethodGet
	switch {
	case request.Context().Err() != nil: // the client did not wait for the response
	case err != nil:
		if reads {
			l.heard(err)
		}
	case response.StatusCode == http.StatusUnauthorized:
		l.heard(apierrors.NewUnauthorized("the server responded with 401 Unauthorized"))
	case !reads:
	case response.StatusCode == http.StatusForbidden:
		l.heard(apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	case response.StatusCode == http.StatusTooManyRequests, response.StatusCode >= http.StatusInternalServerError:
		l.heard(apierrors.NewGenericServerResponse(response.StatusCode, "get", schema.GroupResource{}, "", "", 0, true))
	default:
		l.heard(nil)
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (l *listener) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }
