// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentlimit counts what the agents of each cluster do, and says when it is too often.
package agentlimit

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// maxClusters bounds the memory. Each has one who has proven to be its agent.
const maxClusters = 1 << 18

// Limit is how often the agents of one cluster may do something, through one replica.
type Limit struct {
	// PerSecond is the rate in the long run; 0 is no limit.
	PerSecond float64
	// Burst is how often they may do it at once, after a time in which they have not.
	Burst int
}

// Wait is the time in seconds after which it may be done once more.
func (l Limit) Wait() int { return int(math.Ceil(1 / l.PerSecond)) }

// refill is the time after which it does not matter what was done before.
func (l Limit) refill() time.Duration {
	return time.Duration(math.Ceil(float64(l.Burst)/l.PerSecond)) * time.Second
}

// Limiter counts for each cluster.
type Limiter struct {
	Limit
	mu       sync.Mutex
	clusters *cache.LRUExpireCache
}

// New returns a limiter that has counted nothing.
func New(limit Limit) *Limiter {
	return &Limiter{Limit: limit, clusters: cache.NewLRUExpireCache(maxClusters)}
}

// Accept says whether the agents of a cluster may do it once more now, and counts it.
func (l *Limiter) Accept(cluster string) bool {
	if l.PerSecond <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.clusters.Get(cluster)
	if !ok {
		found = flowcontrol.NewTokenBucketRateLimiter(float32(l.PerSecond), l.Burst)
	}
	l.clusters.Add(cluster, found, l.refill())
	return found.(flowcontrol.PassiveRateLimiter).TryAccept()
}
