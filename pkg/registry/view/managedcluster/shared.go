// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Cached is the cache of the stored clusters.
type Cached interface {
	// ReadinessCheck returns an error as long as the cache has not read all clusters.
	ReadinessCheck() error
	// Cached returns a cluster that is not older than a version, "0" for any. It shares everything except its outermost struct with the cache.
	Cached(ctx context.Context, name, version string) (runtime.Object, error)
}

// shared replaces clusters that were read for the view with those of the cache of stored clusters, so that each exists once in memory and not twice.
// Objects in caches are never modified, and rows differ in their outermost struct only. It has one user at a time.
type shared struct {
	cached Cached
	// awaited reports that the cache was ready, or was waited for in vain.
	awaited bool
	// behind reports that waiting for the cache timed out, or that it could not be read. It is not waited for again before it has caught up.
	behind bool
}

// maxStart is the maximum time for the cache to read all clusters. A view without the cache keeps a second copy of each.
const maxStart = 30 * time.Second

// await waits until the cache is ready. The first request to a server that has just started may be for the view, and both read the same clusters
// then.
func (s *shared) await() {
	s.awaited = true
	_ = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, maxStart, true, func(context.Context) (bool, error) {
		return s.cached.ReadinessCheck() == nil, nil
	})
}

// of returns the cached cluster if it has the same version, and otherwise the cluster itself. Both follow etcd at the same time: a cluster that was
// just written may arrive here first, and then the cache is waited for.
func (s *shared) of(c *cluster.ManagedCluster) *cluster.ManagedCluster {
	if s.cached == nil {
		return c
	}
	if !s.awaited {
		s.await()
	}
	version := c.ResourceVersion
	if s.behind {
		version = "0"
	}
	object, err := s.cached.Cached(context.Background(), c.Name, version)
	if err != nil {
		s.behind = s.behind || !apierrors.IsNotFound(err) // a cluster that was deleted again is not late
		return c
	}
	found, ok := object.(*cluster.ManagedCluster)
	if !ok || found.UID != c.UID || found.ResourceVersion != c.ResourceVersion {
		return c
	}
	s.behind = false
	return found
}
