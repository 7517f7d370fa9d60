// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"crypto/sha256"
	"net/http"
	"sync"
)

// counter limits the concurrent requests of each visitor and of all.
type counter struct {
	ofOne, ofAll int

	mu sync.Mutex
	// running has no entry for a visitor without a request, so it is no larger than ofAll.
	running map[[sha256.Size]byte]int
	all     int
}

func newCounter(ofOne, ofAll int) *counter {
	return &counter{ofOne: ofOne, ofAll: ofAll, running: map[[sha256.Size]byte]int{}}
}

// begin counts a request until done is called.
func (c *counter) begin(visitor [sha256.Size]byte) (done func(), refused *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running[visitor] >= c.ofOne:
		return nil, refuse(http.StatusTooManyRequests, "there are %d requests at one time already: close pages that you do not look at", c.ofOne)
	case c.all >= c.ofAll:
		return nil, refuse(http.StatusTooManyRequests, "this server has %d requests at one time already, of all its users: try again later", c.ofAll)
	}
	c.running[visitor]++
	c.all++
	return func() { c.end(visitor) }, nil
}

func (c *counter) end(visitor [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	c.running[visitor]--
	if c.running[visitor] == 0 {
		delete(c.running, visitor)
	}
}
