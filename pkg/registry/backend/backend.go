// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backend creates the storages of our resources with a chosen client of etcd: one that dials, or one of the embedded etcd, which needs no
// connection.
package backend

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/tracing"
)

const (
	// The values of k8s.io/apiserver's own etcd client.
	dialTimeout      = 20 * time.Second
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
)

// Connect creates a client of etcd. The caller closes it.
type Connect func(storagebackend.TransportConfig) (*kubernetes.Client, error)

// Options are the differences of a storage from those of k8s.io/apiserver.
type Options struct {
	// Connect creates the client. The default is Dial.
	Connect Connect
	// AdaptClient, if not nil, modifies the client before it is used.
	AdaptClient func(*storagebackend.ConfigForResource, *kubernetes.Client)
	// AdaptStorage, if not nil, wraps the storage below its cache.
	AdaptStorage func(storage.Interface) storage.Interface
}

// Decorator creates the cached storage of a resource.
func (o Options) Decorator() generic.StorageDecorator {
	return func(config *storagebackend.ConfigForResource, resourcePrefix string,
		keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		raw, destroyRaw, err := o.NewRaw(config, resourcePrefix, newFunc, newListFunc)
		if err != nil {
			return nil, nil, err
		}
		cached, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             raw,
			Versioner:           storage.APIObjectVersioner{},
			GroupResource:       config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow,
			ResourcePrefix:      resourcePrefix,
			KeyFunc:             keyFunc,
			NewFunc:             newFunc,
			NewListFunc:         newListFunc,
			GetAttrsFunc:        getAttrs,
			IndexerFuncs:        triggers,
			Indexers:            indexers,
			Codec:               config.Codec,
		})
		if err != nil {
			destroyRaw()
			return nil, nil, err
		}
		delegator := cacher.NewCacheDelegator(cached, raw)
		var once sync.Once
		return delegator, func() {
			once.Do(func() {
				delegator.Stop()
				cached.Stop()
				destroyRaw()
			})
		}, nil
	}
}

// NewRaw creates a storage without a cache, like factory.Create. It does not compact: one storage of the process that factory.Create created does
// that for all.
func (o Options) NewRaw(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (storage.Interface, factory.DestroyFunc, error) {
	connect := o.Connect
	if connect == nil {
		connect = Dial
	}
	etcd, err := connect(config.Transport)
	if err != nil {
		return nil, nil, fmt.Errorf("etcd client for %s: %w", config.GroupResource, err)
	}
	etcd.KV = etcd3.NewETCDLatencyTracker(etcd.KV)
	if o.AdaptClient != nil {
		o.AdaptClient(config, etcd)
	}
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(etcd, nil, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		_ = etcd.Close()
		return nil, nil, err
	}
	var adapted storage.Interface = explained{store}
	if o.AdaptStorage != nil {
		adapted = o.AdaptStorage(adapted)
	}
	var once sync.Once
	return adapted, func() {
		once.Do(func() {
			store.Close()
			_ = etcd.Close()
		})
	}, nil
}

// Dial connects to etcd like k8s.io/apiserver's storage factory, which does not export it.
func Dial(config storagebackend.TransportConfig) (*kubernetes.Client, error) {
	cfg := clientv3.Config{
		Endpoints:            config.ServerList,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialOptions: []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithPropagators(tracing.Propagators()),
			otelgrpc.WithTracerProvider(config.TracerProvider)))},
	}
	if config.CertFile != "" || config.KeyFile != "" || config.TrustedCAFile != "" {
		tlsConfig, err := transport.TLSInfo{
			CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile,
		}.ClientConfig()
		if err != nil {
			return nil, err
		}
		cfg.TLS = tlsConfig
	}
	if config.EgressLookup != nil {
		dial, err := config.EgressLookup(egressselector.Etcd.AsNetworkContext())
		if err != nil {
			return nil, err
		}
		if dial != nil {
			cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				if strings.Contains(addr, "//") {
					u, err := url.Parse(addr)
					if err != nil {
						return nil, err
					}
					addr = u.Host
				}
				return dial(ctx, "tcp", addr)
			}))
		}
	}
	return kubernetes.New(cfg)
}
