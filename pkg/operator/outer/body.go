// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package outer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// watchBurst is how many bytes a watch may send at once, and watchRate how many in a second after that: events cost time.
	// The connection keeps the server waiting, which has to send less or to end the watch.
	watchBurst = 8 << 20
	watchRate  = 512 << 10
)

// body is the one of an answer, after decompression, with bounds.
type body struct {
	io.ReadCloser
	guard *guard
	ctx   context.Context
	end   func()

	// max is how many bytes there may be: in all, or until the end of an event.
	max int
	// plain is text, in which nothing can be told from a comma.
	plain bool
	// idle ends a watch; it is nil for all else.
	idle *time.Timer
	// credit is how many bytes of a watch may be read at once, at a time.
	credit float64
	at     time.Time

	bytes, entries, depth int
	quoted, escaped       bool
	err                   error
}

// watch has the bounds count for each event, and the time while there is none.
func (b *body) watch(idle *time.Timer) {
	b.idle, b.max, b.credit, b.at = idle, b.guard.event, watchBurst, time.Now()
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
			"the cluster has answered more than is read: %d bytes, or %d fields and elements", b.max, b.guard.entries)}
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
		b.pace(n)
		b.idle.Reset(b.guard.watchIdle)
	}
	return n, err
}

// pace waits until so much may have been read.
func (b *body) pace(n int) {
	now := time.Now()
	b.credit = min(watchBurst, b.credit+now.Sub(b.at).Seconds()*watchRate) - float64(n)
	b.at = now
	if b.credit >= 0 {
		return
	}
	b.idle.Stop()
	wait := time.NewTimer(time.Duration(-b.credit / watchRate * float64(time.Second)))
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
				b.bytes, b.entries = 0, 0
			}
		}
	}
	return !b.over()
}

func (b *body) over() bool { return b.bytes > b.max || b.entries > b.guard.entries }

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
