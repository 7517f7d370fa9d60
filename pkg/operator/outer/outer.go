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
	"context"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
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
	// MaxEvent is the same for one event of a watch.
	MaxEvent = 4 << 20
	// MaxEntries is how many fields and elements an answer, or an event, may have. Two bytes of an answer can take a thousand
	// when they are decoded.
	MaxEntries = 100_000
	// MaxMessage is how many bytes of what a server says are shown.
	MaxMessage = 512
	// DefaultQPS and DefaultBurst bound the requests to a cluster, of all its clients together.
	DefaultQPS, DefaultBurst = 20, 40
)

// Options are what may differ from cluster to cluster.
type Options struct {
	// UserAgent says who asks, such as "hub-operator".
	UserAgent string
	// QPS and Burst are DefaultQPS and DefaultBurst if they are 0.
	QPS   float32
	Burst int
}

// Cluster is one that is reached by a source. All of its clients share its connections and its bounds.
type Cluster struct {
	source *kubeconfig.Source
	config *rest.Config
	client *http.Client
	base   *http.Transport
}

// New is the cluster of a source; nothing is asked of it yet. Keep one for each cluster, while the source's Hash stays the same, and
// Close the former one.
func New(source *kubeconfig.Source, options Options) (*Cluster, error) {
	panic("not implemented")
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

// Token implements kubeconfig.Minter. Its errors can be shown.
func (c *Cluster) Token(
	ctx context.Context, account kubeconfig.Account, lifetime time.Duration,
) (*authenticationv1.TokenRequest, error) {
	panic("not implemented")
}

// Explain is an error of a client of the cluster for a condition, an event or a log: one line of MaxMessage bytes at most, without
// control characters and without the credentials of the source. An error that has not gone through it must not be shown: the server
// may have written any part of it.
func (c *Cluster) Explain(err error) string {
	panic("not implemented")
}

// Close ends connections that are not in use. Requests and watches go on until their contexts end.
func (c *Cluster) Close() { c.base.CloseIdleConnections() }
