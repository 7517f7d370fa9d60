// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// WithoutRedirects returns a copy of a configuration that does not follow redirects. The agent may be in the management cluster's network, which neither a
// managed cluster nor a hub must be able to access; and client-go would send the agent's token along.
func WithoutRedirects(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return straight{next} })
	return config
}

type straight struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s straight) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode >= 300 && response.StatusCode < 400 && response.StatusCode != http.StatusNotModified {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the server responded with a redirect, %d, which is not followed: the kubeconfig must name the server itself",
			response.StatusCode)
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (s straight) WrappedRoundTripper() http.RoundTripper { return s.RoundTripper }
