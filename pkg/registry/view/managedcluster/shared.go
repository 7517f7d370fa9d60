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
	// ReadinessCheck is an error as long as the cache has not read all clusters.
	ReadinessCheck() error
	// Cached is a cluster that is no older than a version, "0" for any. It shares all but its outermost struct with the cache.
	Cached(ctx context.Context, name, version string) (runtime.Object, error)
}

// shared makes clusters that were read for the view those that the cache of the stored clusters has, so that there is one of each in
// memory and not two. Objects in caches are never changed, and rows differ in their outermost struct only. It has one user at a time.
type shared struct {
	cached Cached
	// awaited says that the cache has been ready, or has not become so in time.
	awaited bool
	// behind says that the cache was waited for in vain, or cannot be asked. It is not waited for again before it has caught up.
	behind bool
}

// longestStart is how long the cache may take to read all clusters. A view that does without it keeps a second copy of each.
const longestStart = 30 * time.Second

// await waits until the cache is ready. A server that has just started may be asked for the view as soon as for anything else, and both then
// read the same clusters.
func (s *shared) await() {
	s.awaited = true
	_ = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, longestStart, true, func(context.Context) (bool, error) {
		return s.cached.ReadinessCheck() == nil, nil
	})
}

// of is a cluster as the cache has it if that is of the same version, and the cluster itself otherwise. Both follow etcd at the same time: a
// cluster that has just been written may come here first, and then is waited for.
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
		s.behind = s.behind || !apierrors.IsNotFound(err) // A cluster that has gone again is not late.
		return c
	}
	found, ok := object.(*cluster.ManagedCluster)
	if !ok || found.UID != c.UID || found.ResourceVersion != c.ResourceVersion {
		return c
	}
	s.behind = false
	return found
}
