// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// FollowToken has all clients of a configuration, and of its copies, read the file of its token again as soon as the server refuses the
// token, and once a minute besides. By itself client-go reads it once a minute, whatever the server says: so long would a program that has a
// good token in its file be refused. A configuration without such a file stays as it is. A client with a token of its own sends that one.
func FollowToken(config *rest.Config) {
	if config.BearerTokenFile == "" {
		return
	}
	config.Wrap(followed(config.BearerTokenFile))
	// Else client-go would send what it has read itself.
	config.BearerToken, config.BearerTokenFile = "", ""
}

// FollowedToken is FollowToken for a client that reads a kubeconfig by itself, and lets its transport be wrapped: it is given the token of
// the same kubeconfig in place of the one that it would send. It is nil for a kubeconfig without a token in a file.
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

// withoutToken drops the token of a request, so that another one is sent in its place.
type withoutToken struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w withoutToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = utilnet.CloneRequest(request)
	request.Header.Del("Authorization")
	return w.RoundTripper.RoundTrip(request)
}

// WrappedRoundTripper is what client-go looks through to find a transport.
func (w withoutToken) WrappedRoundTripper() http.RoundTripper { return w.RoundTripper }
