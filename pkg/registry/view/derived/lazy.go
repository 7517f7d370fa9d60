// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Lazy is a cache that starts with its first reader, so that an unused resource costs nothing.
type Lazy struct {
	start func() (*Cache, error)

	mu    sync.Mutex
	cache *Cache
	ended bool
}

// NewLazy returns a cache that is not started yet.
func NewLazy(start func() (*Cache, error)) *Lazy { return &Lazy{start: start} }

// GetList lists once all objects have been computed.
func (l *Lazy) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	cache, err := l.begun(ctx)
	if err != nil {
		return err
	}
	return cache.GetList(ctx, key, opts, list)
}

// Watch watches once all objects have been computed.
func (l *Lazy) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	cache, err := l.begun(ctx)
	if err != nil {
		return nil, err
	}
	return cache.Watch(ctx, key, opts)
}

// Wait starts the cache, and waits until all objects have been computed.
func (l *Lazy) Wait(ctx context.Context) error {
	_, err := l.begun(ctx)
	return err
}

// Destroy stops the cache.
func (l *Lazy) Destroy() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.cache != nil {
		l.cache.Destroy()
	}
}

func (l *Lazy) begun(ctx context.Context) (*Cache, error) {
	cache, err := l.begin()
	if err != nil {
		return nil, err
	}
	if err := cache.Wait(ctx); err != nil {
		return nil, generic.Unavailable(err)
	}
	return cache, nil
}

func (l *Lazy) begin() (cache *Cache, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, generic.Unavailable(errors.New("the server is shutting down"))
	}
	if l.cache == nil {
		cache, err = l.start()
		if err != nil {
			return nil, err
		}
		l.cache = cache
	}
	return l.cache, nil
}
