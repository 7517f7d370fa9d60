// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/time/rate"
)

const (
	// watchBurst is the number of bytes that all watches of a cluster may send at once, and watchRate the number per second after that: processing
	// events takes time. Backpressure on the connection makes the server send less or end the watch.
	watchBurst = 8 << 20
	watchRate  = 512 << 10
	// minEvent is the minimum size that an event is charged with: 2,048 events may arrive at once, and 128 per second after that, however small
	// they are.
	minEvent = 4 << 10
)

// watchLimiter returns the rate limiter of a cluster.
func watchLimiter() *rate.Limiter { return rate.NewLimiter(watchRate, watchBurst) }

// body is the body of a response, after decompression, with limits.
type body struct {
	io.ReadCloser
	guard *guard
	ctx   context.Context
	end   func()

	// max is the maximum number of bytes, and most the maximum number of fields and elements: in total, or per event.
	max, most int
	// plain means text, in which commas have no meaning.
	plain bool
	// idle ends a watch; it is nil for all other requests.
	idle *time.Timer
	// small is added to the bytes of small events of a watch.
	small int
	// hasPlace means that this is one of the large responses that are currently read.
	hasPlace bool

	bytes, entries, depth int
	quoted, escaped       bool
	err                   error
}

// watch makes the limits apply per event, and starts the idle timeout.
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
			"the response of the cluster exceeds the maximum of %d bytes, or %d fields and elements", b.max, b.most)}
		return 0, b.err
	}
	if b.idle == nil && b.bytes > largeAnswer && !b.place() {
		b.err = b.guard.ended(b.ctx, b.ctx.Err())
		return 0, b.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = b.guard.ended(b.ctx, err)
		if b.idle != nil && errors.Is(context.Cause(b.ctx), errTooSlow) {
			b.err = io.EOF // as if a server ended the watch
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

// place waits for a slot for a large response. It returns false if the request ended before. The slot is released when the request ends, within
// requestTimeout.
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

// pace waits until that many more bytes of the cluster's watches may be read.
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

// count reports whether the body is within the limits. Of JSON it only tracks strings and the starts and ends of objects and lists.
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
			b.depth--
			if b.depth == 0 && b.idle != nil {
				// The decoder has the whole event.
				if b.over() {
					return false
				}
				b.small += max(0, minEvent-b.bytes)
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
