// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// liveEvery is the shortest interval between reads from etcd of one cluster that is not accepted.
	liveEvery = time.Second
	// livePerSecond and liveBurst limit the reads for all clusters together.
	livePerSecond, liveBurst = 50, 100
	// liveClusters bounds the memory. It need not be larger than the number of clusters that may be read within liveEvery.
	liveClusters = 1024
)

// liveReads limits the reads from etcd that agents of denied clusters can cause. Beyond the limit the watch cache decides, which is stale by some
// milliseconds: an agent that was rejected retries.
type liveReads struct {
	mu   sync.Mutex
	last *cache.LRUExpireCache
	all  flowcontrol.PassiveRateLimiter
}

func newLiveReads() *liveReads {
	return &liveReads{last: cache.NewLRUExpireCache(liveClusters), all: flowcontrol.NewTokenBucketPassiveRateLimiter(livePerSecond, liveBurst)}
}

// allow reports whether a cluster may be read now.
func (l *liveReads) allow(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, recently := l.last.Get(name); recently || !l.all.TryAccept() {
		return false
	}
	l.last.Add(name, nil, liveEvery)
	return true
}
