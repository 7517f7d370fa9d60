// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outer is a cluster that an operator works on from outside and does not trust. The cluster's server may lie, answer slowly,
// without end, or not at all, and send its clients elsewhere. It must not get at what is not its own, and must not take the
// operator's time or memory from other clusters. See docs/design/minted.md.
//
// What is read is still what the server says. In particular nothing bounds how many objects an informer has: read by name, or watch
// one name, with metadata alone where that is enough.
package outer

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

	"github.com/clusterhub/clusterhub/pkg/operator/kubeconfig"
)

const (
	// RequestTimeout is how long a request may take that is no watch, from the connection to the last byte of the answer.
	RequestTimeout = 30 * time.Second
	// PassTimeout is a good deadline for all requests of one look at a cluster together: a server that takes most of RequestTimeout
	// for each of them keeps a worker no longer.
	PassTimeout = 2 * time.Minute
	// WatchIdle is how long a watch may say nothing. It ends then as it does when the server ends it, and a client that goes on
	// watching asks anew.
	WatchIdle = 15 * time.Minute
	// MaxAnswer is how many bytes an answer may have, without compression.
	MaxAnswer = 10 << 20
	// MaxMetadata is the same for one event of a watch, and for an answer of metadata alone: several of these come at one time, and of
	// one object none is larger.
	MaxMetadata = 512 << 10
	// MaxEntries is how many fields and elements an answer may have. Two bytes of an answer can take a thousand when they are decoded.
	MaxEntries = 100_000
	// MaxMetadataEntries is the same where MaxMetadata holds.
	MaxMetadataEntries = 10_000
	// largeAnswer is how many bytes an answer has of which only largeAtOnce are read at one time, of all clusters together. So a few
	// clusters that answer so do not take all memory of the process.
	largeAnswer, largeAtOnce = 1 << 20, 4
	// dialTimeout is how long it may take to connect, and the same for the handshake of TLS.
	dialTimeout = 10 * time.Second
	// maxHeader is how many bytes the header of an answer may have.
	maxHeader = 64 << 10
	// MaxMessage is how many bytes of what a server says are shown.
	MaxMessage = 512
	// DefaultQPS bounds the requests to a cluster per second, of all its clients together.
	DefaultQPS = 20
	// DefaultBurst bounds those at once.
	DefaultBurst = 40
)

// Options are what may differ from cluster to cluster.
type Options struct {
	// UserAgent says who asks, such as "hub-operator".
	UserAgent string
	// QPS and Burst are DefaultQPS and DefaultBurst if they are 0.
	QPS   float32
	Burst int
	// MaxAnswer and MaxEntries are those of this package if they are 0. Say less where many answers are kept at one time.
	MaxAnswer, MaxEntries int
}

// large has a place for each large answer that is read now.
var large = make(chan struct{}, largeAtOnce)

// Cluster is one that is reached by a source. All of its clients share its connections and its bounds.
type Cluster struct {
	source *kubeconfig.Source
	config *rest.Config
	client *http.Client
	core   corev1client.CoreV1Interface
	base   *http.Transport
}

// New is the cluster of a source; nothing is asked of it yet. Keep one for each cluster, while the source's Hash stays the same, and
// Close the former one.
func New(source *kubeconfig.Source, options Options) (*Cluster, error) {
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
	c := &Cluster{source: source, base: transport(source)}
	c.config = &rest.Config{
		Host: source.Server(), BearerToken: source.BearerToken(), UserAgent: options.UserAgent,
		Transport: &guard{base: c.base, host: server.Host, redact: source.Redact, limits: bounds, watchBytes: watchLimiter()},
		// Not protobuf or CBOR, in which an answer cannot be bounded by what it is made of.
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
		// One for all clients that are made of the configuration.
		RateLimiter: flowcontrol.NewTokenBucketRateLimiter(options.QPS, options.Burst),
		// They are what the server writes.
		WarningHandlerWithContext: rest.NoWarnings{},
	}
	if c.client, err = rest.HTTPClientFor(c.config); err != nil {
		return nil, err
	}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.core, err = corev1client.NewForConfigAndClient(c.Config(), c.client)
	return c, err
}

// transport is the way to the server, with limits for all that comes before an answer's body.
func transport(source *kubeconfig.Source) *http.Transport {
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

// Config is for clients that are made of one, such as dynamic and typed clientsets, and discovery. All bounds hold for them. Do not
// set Timeout in it, which would hold for watches as well.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client is a client of controller-runtime, without a cache. Give it a RESTMapper where the kinds are known: without one it asks for
// all that the cluster serves.
func (c *Cluster) Client(options client.Options) (client.WithWatch, error) {
	options.HTTPClient = c.client
	return client.NewWithWatch(c.Config(), options)
}

// Token implements kubeconfig.Minter. The audience is that of the API server, which is the default of each server. Its errors can be
// shown: an answer that is none may have a token in it, and nothing of it is quoted.
func (c *Cluster) Token(
	ctx context.Context, account kubeconfig.Account, lifetime time.Duration,
) (*authenticationv1.TokenRequest, error) {
	answer, err := c.core.ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{
		// A server of Kubernetes 1.34 or later refuses another UID.
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

// Close ends connections that are not in use. Requests and watches go on until their contexts end.
func (c *Cluster) Close() { c.base.CloseIdleConnections() }
