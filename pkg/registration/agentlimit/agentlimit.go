// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentlimit limits the rate of actions of the agents of each cluster.
package agentlimit

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// maxClusters limits the memory. Each entry is of a cluster whose agent was authenticated.
const maxClusters = 1 << 18

// Limit is the limit for the agents of one cluster, through one replica.
type Limit struct {
	// PerSecond is the rate in the long run; 0 is no limit.
	PerSecond float64
	// Burst is the number of actions at once, after a time without any.
	Burst int
}

// Wait returns the time in seconds after which one more action is allowed.
func (l Limit) Wait() int { return int(math.Ceil(1 / l.PerSecond)) }

// refill returns the time after which earlier actions do not matter.
func (l Limit) refill() time.Duration {
	return time.Duration(math.Ceil(float64(l.Burst)/l.PerSecond)) * time.Second
}

// Limiter counts the actions of each cluster.
type Limiter struct {
	Limit
	mu       sync.Mutex
	clusters *cache.LRUExpireCache
}

// New returns a limiter without any counts.
func New(limit Limit) *Limiter {
	return &Limiter{Limit: limit, clusters: cache.NewLRUExpireCache(maxClusters)}
}

// Accept reports whether the agents of a cluster may act once more now, and counts it.
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
