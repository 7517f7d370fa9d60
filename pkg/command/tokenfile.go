// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// FollowToken makes all clients of a configuration, and of its copies, read the file of its token again as soon as the server rejects the token, and
// once a minute in any case. By itself client-go reads it once a minute, whatever the response: for that long, a program with a valid token in its
// file would be rejected. A configuration without such a file is not changed. A client with a token of its own sends that one.
func FollowToken(config *rest.Config) {
	if config.BearerTokenFile == "" {
		return
	}
	config.Wrap(followed(config.BearerTokenFile))
	// Otherwise client-go would send the token that it has read itself.
	config.BearerToken, config.BearerTokenFile = "", ""
}

// FollowedToken is like FollowToken for a client that reads a kubeconfig by itself, and whose transport can be wrapped: the wrapper replaces the
// client's token by that of the same kubeconfig. It is nil for a kubeconfig without a token in a file.
func FollowedToken(kubeconfig string) (transport.WrapperFunc, error) {
	config, err := restConfig(kubeconfig)
	if err != nil || config.BearerTokenFile == "" {
		return nil, err
	}
	wrap := followed(config.BearerTokenFile)
	return func(next http.RoundTripper) http.RoundTripper { return withoutToken{wrap(next)} }, nil
}

func followed(tokenFile string) transport.WrapperFunc {
	return transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(tokenFile))
}

// withoutToken removes the token of a request, so that another one is sent in its place.
type withoutToken struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w withoutToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = utilnet.CloneRequest(request)
	request.Header.Del("Authorization")
	return w.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (w withoutToken) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }
