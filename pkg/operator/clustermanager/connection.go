// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
	"github.com/clusterhub/clusterhub/pkg/remote/watch"
)

const (
	// maxAnswer and maxEntries limit a response of a hub: the responses for all kinds are in memory at the same time. A list of all objects of one
	// kind of a hub has a fifth of that size.
	maxAnswer, maxEntries = 512 << 10, 10_000
	// After changesAtOnce reconciles because of changes on a hub, one reconcile per changeEach is allowed.
	changesAtOnce = 30
	changeEach    = 10 * time.Second
)

// connections holds the connections to hubs, by the name of the ClusterManager.
type connections struct {
	reach.Pool[*connection]
	// wrap is for tests: it returns a client that fails as if the process had ended.
	wrap func(client.WithWatch) client.Client
}

// connection is a connection to a hub, with watches of the objects that were created there.
type connection struct {
	cluster *reach.Connection
	client  client.Client
	// discovery discovers the APIs of the hub.
	discovery discovery.ServerResourcesInterfaceWithContext
	// The watches start with the first call of watch, and stop with the connection.
	metadata metadata.Interface
	watches  sync.Once
	ctx      context.Context
	end      context.CancelFunc
}

// of returns the connection of a ClusterManager for this source. It closes a connection for a different source.
func (c *connections) of(name string, source *mint.Source) (*connection, error) {
	return c.Get(name, source.Hash(), func() (*connection, error) { return c.open(source) })
}

func (c *connections) open(source *mint.Source) (*connection, error) {
	cluster, err := reach.New(source, reach.Options{UserAgent: deploy.ManagedByOperator, MaxAnswer: maxAnswer, MaxEntries: maxEntries})
	if err != nil {
		return nil, err
	}
	api, err := cluster.Client(client.Options{Scheme: scheme.Scheme, Mapper: knownKinds()})
	if err != nil {
		return nil, err
	}
	serves, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		return nil, err
	}
	watched, err := cluster.Metadata()
	if err != nil {
		return nil, err
	}
	var reached client.Client = api
	if c.wrap != nil {
		reached = c.wrap(api)
	}
	ctx, end := context.WithCancel(context.Background())
	return &connection{cluster: cluster, client: reached, discovery: serves, metadata: watched, ctx: ctx, end: end}, nil
}

// Close stops the watches, and closes idle connections.
func (c *connection) Close() {
	c.end()
	c.cluster.Close()
}

// watch calls changed after changes of the owner's objects on the hub. It starts with the first call.
func (c *connection) watch(owner apply.Owner, changed func()) {
	c.watches.Do(func() {
		options := watch.Options{LabelSelector: labels.SelectorFromSet(owner.Labels).String()}
		changed := paced(rate.NewLimiter(rate.Every(changeEach), changesAtOnce), changed)
		handler := watch.Handler{Event: func(*metav1.PartialObjectMetadata, bool) { changed() }, Started: changed}
		for _, k := range kindsWhere(func(k kind) bool { return k.onHub }) {
			go watch.Run(c.ctx, c.metadata.Resource(k.GVR()), options, handler)
		}
	})
}

// paced returns a function that calls do after a change: settle later, so that one call covers changes that occur together, and no more often than
// limit permits. A hub that changes all the time must not use up the time and the requests to the management cluster that other hubs need. A call of
// do starts after each change, so do observes it.
func paced(limit *rate.Limiter, do func()) func() {
	var pending atomic.Bool
	return func() {
		if pending.Swap(true) {
			return
		}
		time.AfterFunc(max(limit.Reserve().Delay(), settle), func() {
			pending.Store(false) // first: do may miss a change that comes after this
			do()
		})
	}
}

// knownKinds returns a RESTMapper of the kinds of a hub.
func knownKinds() meta.RESTMapper {
	var all []apply.Mapping
	for _, k := range kinds {
		all = append(all, k.Mapping)
	}
	return apply.Mapper(all...)
}
