// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package outer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/time/rate"
)

const (
	// watchBurst is how many bytes all watches of a cluster may send at once, and watchRate how many in a second after that: events cost
	// time. The connection keeps the server waiting, which has to send less or to end the watch.
	watchBurst = 8 << 20
	watchRate  = 512 << 10
	// leastEvent is what an event counts for at least: 2,048 may come at once, and 128 in a second after that, however small they are.
	leastEvent = 4 << 10
)

// watchLimiter is that of a cluster.
func watchLimiter() *rate.Limiter { return rate.NewLimiter(watchRate, watchBurst) }

// body is the one of an answer, after decompression, with bounds.
type body struct {
	io.ReadCloser
	guard *guard
	ctx   context.Context
	end   func()

	// max is how many bytes there may be, and most how many fields and elements: in all, or until the end of an event.
	max, most int
	// plain is text, in which nothing can be told from a comma.
	plain bool
	// idle ends a watch; it is nil for all else.
	idle *time.Timer
	// small is what events of a watch count for beside their bytes.
	small int
	// hasPlace is that it is one of the large answers that are read now.
	hasPlace bool

	bytes, entries, depth int
	quoted, escaped       bool
	err                   error
}

// watch has the bounds count for each event, and the time while there is none.
func (b *body) watch(idle *time.Timer) {
	b.idle, b.max, b.most = idle, b.guard.metadata, b.guard.metadataEntries
	b.idle.Reset(b.guard.watchIdle)
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err = b.ReadCloser.Read(p)
	if !b.count(p[:n]) {
		b.err = &Error{Reason: ReasonTooLarge, message: fmt.Sprintf(
			"the cluster has answered more than is read: %d bytes, or %d fields and elements", b.max, b.most)}
		return 0, b.err
	}
	if b.idle == nil && b.bytes > largeAnswer && !b.place() {
		b.err = b.guard.ended(b.ctx, b.ctx.Err())
		return 0, b.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = b.guard.ended(b.ctx, err)
		if b.idle != nil && errors.Is(context.Cause(b.ctx), errTooSlow) {
			b.err = io.EOF // as a server ends a watch
		}
		return n, b.err
	}
	if b.idle != nil && n > 0 {
		b.pace(n + b.small)
		b.small = 0
		b.idle.Reset(b.guard.watchIdle)
	}
	return n, err
}

// place waits until there is one more place for a large answer. It is false if the request has ended before. The place is free again when
// the request ends, which is soon: no answer may take longer than requestTimeout.
func (b *body) place() bool {
	if b.hasPlace {
		return true
	}
	select {
	case b.guard.large <- struct{}{}:
		b.hasPlace = true
		context.AfterFunc(b.ctx, func() { <-b.guard.large })
		return true
	case <-b.ctx.Done():
		return false
	}
}

// pace waits until so much may have been read of the watches of the cluster.
func (b *body) pace(n int) {
	delay := b.guard.watchBytes.ReserveN(time.Now(), min(n, watchBurst)).Delay()
	if delay <= 0 {
		return
	}
	b.idle.Stop()
	wait := time.NewTimer(delay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-b.ctx.Done():
	}
}

// count says whether it is within the bounds. Of JSON it knows what is in texts, where objects and lists begin and end, and no more.
func (b *body) count(p []byte) bool {
	for _, c := range p {
		b.bytes++
		if b.plain {
			continue
		}
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted:
			b.quoted, b.escaped = c != '"', c == '\\'
		case c == '"':
			b.quoted = true
		case c == ',':
			b.entries++
		case c == '{' || c == '[':
			b.depth++
			b.entries++
		case c == '}' || c == ']':
			if b.depth--; b.depth == 0 && b.idle != nil {
				// The decoder has all of the event.
				if b.over() {
					return false
				}
				b.small += max(0, leastEvent-b.bytes)
				b.bytes, b.entries = 0, 0
			}
		}
	}
	return !b.over()
}

func (b *body) over() bool { return b.bytes > b.max || b.entries > b.most }

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
