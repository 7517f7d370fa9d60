// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach connects to a cluster that an operator works on from outside and does not trust. The cluster's server may lie, respond slowly,
// endlessly, or not at all, and redirect its clients. It must not get access to others' data, and must not take the operator's time or memory from
// other clusters. See docs/design/detached.md.
//
// The content of responses is still what the server sends. In particular nothing limits the number of objects in an informer: read by name, or watch
// one name, with metadata alone where that is enough.
package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

const (
	// RequestTimeout is the maximum duration of a request that is not a watch, from the connection to the last byte of the response.
	RequestTimeout = 30 * time.Second
	// PassTimeout is a good deadline for all requests of one reconcile of a cluster together: a server that takes most of RequestTimeout for each of
	// them occupies a worker no longer.
	PassTimeout = 2 * time.Minute
	// WatchIdle is the maximum time without an event of a watch. The watch ends then as if the server had ended it, and a client that continues to
	// watch sends another request.
	WatchIdle = 15 * time.Minute
	// MaxAnswer is the maximum size of a response in bytes, without compression.
	MaxAnswer = 10 << 20
	// MaxMetadata is the same for one event of a watch, and for a response of metadata alone: several of these arrive at the same time, and the
	// metadata of one object is never larger.
	MaxMetadata = 512 << 10
	// MaxEntries is the maximum number of fields and elements in a response. Two bytes of a response can take a thousand when they are decoded.
	MaxEntries = 100_000
	// MaxMetadataEntries is the same where MaxMetadata applies.
	MaxMetadataEntries = 10_000
	// largeAnswer is the size in bytes above which only largeAtOnce responses are read at the same time, of all clusters together. So a few clusters
	// with large responses do not use up the memory of the process.
	largeAnswer, largeAtOnce = 1 << 20, 4
	// dialTimeout is the maximum duration to connect, and the same for the TLS handshake.
	dialTimeout = 10 * time.Second
	// maxHeader is the maximum size of a response header in bytes.
	maxHeader = 64 << 10
	// MaxMessage is the maximum number of bytes of a server's text that are shown.
	MaxMessage = 512
	// DefaultQPS limits the requests to a cluster per second, of all its clients together.
	DefaultQPS = 20
	// DefaultBurst limits bursts of requests.
	DefaultBurst = 40
)

// Options are the settings that may differ between clusters.
type Options struct {
	// UserAgent identifies the client, such as "hub-operator".
	UserAgent string
	// QPS and Burst default to DefaultQPS and DefaultBurst.
	QPS   float32
	Burst int
	// MaxAnswer and MaxEntries default to the constants of this package. Set less where many responses are held at the same time.
	MaxAnswer, MaxEntries int
}

// large has a slot for each large response that is currently read.
var large = make(chan struct{}, largeAtOnce)

// Connection is a cluster that is reached with a source. All of its clients share its connections and limits.
type Connection struct {
	source *mint.Source
	config *rest.Config
	client *http.Client
	core   corev1client.CoreV1Interface
	base   *http.Transport
}

// New returns the cluster of a source, without sending a request. Keep one for each cluster while the source's Hash stays the same, and Close the
// previous one.
func New(source *mint.Source, options Options) (*Connection, error) {
	server, err := url.Parse(source.Server())
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL", source)
	}
	if options.QPS == 0 {
		options.QPS = DefaultQPS
	}
	if options.Burst == 0 {
		options.Burst = DefaultBurst
	}
	bounds := limits{answer: cmp.Or(options.MaxAnswer, MaxAnswer), entries: cmp.Or(options.MaxEntries, MaxEntries),
		metadata: MaxMetadata, metadataEntries: MaxMetadataEntries, requestTimeout: RequestTimeout, watchIdle: WatchIdle, large: large}
	c := &Connection{source: source, base: transport(source)}
	c.config = &rest.Config{
		Host: source.Server(), BearerToken: source.BearerToken(), UserAgent: options.UserAgent,
		Transport: &guard{base: c.base, host: server.Host, redact: source.Redact, limits: bounds, watchBytes: watchLimiter()},
		// Not protobuf or CBOR, whose content cannot be limited while it is read.
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
		// One for all clients of the configuration.
		RateLimiter: flowcontrol.NewTokenBucketRateLimiter(options.QPS, options.Burst),
		// Warnings are written by the server.
		WarningHandlerWithContext: rest.NoWarnings{},
	}
	c.client, err = rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, err
	}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.core, err = corev1client.NewForConfigAndClient(c.Config(), c.client)
	return c, err
}

// transport returns a transport to the server, with limits for all that precedes a response's body.
func transport(source *mint.Source) *http.Transport {
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  source.Proxy(),
		TLSClientConfig:        source.TLSConfig(),
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  RequestTimeout,
		MaxResponseHeaderBytes: maxHeader,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
	})
}

// Config returns a configuration for clients such as dynamic and typed clientsets, and discovery. All limits apply to them. Do not set Timeout in it,
// which would apply to watches as well.
func (c *Connection) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns a client of controller-runtime, without a cache. Set a RESTMapper where the kinds are known: without one it discovers all APIs of
// the cluster.
func (c *Connection) Client(options client.Options) (client.WithWatch, error) {
	options.HTTPClient = c.client
	return client.NewWithWatch(c.Config(), options)
}

// Token implements mint.TokenSource. The audience is the API server's own, the default of each server. Its errors can be shown: an invalid response
// may contain a token, and is never quoted.
func (c *Connection) Token(
	ctx context.Context, account mint.Account, lifetime time.Duration,
) (*authenticationv1.TokenRequest, error) {
	answer, err := c.core.ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{
		// A server of Kubernetes 1.34 or later rejects a different UID.
		ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name, UID: account.UID},
		Spec:       authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime / time.Second))},
	}, metav1.CreateOptions{})
	var status apierrors.APIStatus
	var ours *Error
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &status), errors.As(err, &ours), ctx.Err() != nil:
		return nil, errors.New(c.Explain(err))
	}
	return nil, &Error{Reason: ReasonNotAnAPIServer, message: notAsAPIServersDo}
}

// Close closes idle connections. Requests and watches continue until their contexts end.
func (c *Connection) Close() { c.base.CloseIdleConnections() }
