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
	// liveEvery is how often one cluster that is not accepted is read from etcd at most.
	liveEvery = time.Second
	// livePerSecond and liveBurst bound the same for all clusters together.
	livePerSecond, liveBurst = 50, 100
	// liveClusters bounds the memory. More clusters than all of them may read in liveEvery need not be known.
	liveClusters = 1024
)

// liveReads bounds the reads from etcd that agents of denied clusters can cause. Past the bound the watch cache's word counts, which
// is late by some milliseconds: an agent that was refused tries again.
type liveReads struct {
	mu   sync.Mutex
	last *cache.LRUExpireCache
	all  flowcontrol.PassiveRateLimiter
}

func newLiveReads() *liveReads {
	return &liveReads{last: cache.NewLRUExpireCache(liveClusters), all: flowcontrol.NewTokenBucketPassiveRateLimiter(livePerSecond, liveBurst)}
}

// allow says whether a cluster may be read now.
func (l *liveReads) allow(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, recently := l.last.Get(name); recently || !l.all.TryAccept() {
		return false
	}
	l.last.Add(name, nil, liveEvery)
	return true
}
