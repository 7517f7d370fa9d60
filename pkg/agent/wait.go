// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// jitterShare is by how much of itself a delay may be shortened, so that agents that started together spread.
const jitterShare = 0.25

// jittered shortens a delay by up to a quarter; it never lengthens one. random is in [0, 1).
func jittered(d time.Duration, random func() float64) time.Duration {
	return d - time.Duration(jitterShare*random()*float64(d))
}

// sleep waits, and says whether the context goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// backoff is delays that grow from shortest to longest.
type backoff struct {
	shortest, longest time.Duration
	random            func() float64

	current time.Duration
}

func (b *backoff) next() time.Duration {
	b.current = min(max(b.current*2, b.shortest), b.longest)
	return jittered(b.current, b.random)
}

func (b *backoff) reset() { b.current = 0 }

// loop is something done again and again.
type loop struct {
	what string
	do   func(context.Context) error
	// interval is the time from one success to the next, less a jitter. After a failure it is tried again sooner, first after
	// a second, then less and less often.
	interval func() time.Duration
	// timeout is for one go.
	timeout time.Duration
	// kick asks for a go before its time; never less than pause after the last.
	kick   <-chan struct{}
	pause  time.Duration
	random func() float64
	said   *said
}

func (l *loop) run(ctx context.Context) {
	retry := backoff{shortest: time.Second, random: l.random}
	for ctx.Err() == nil {
		err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		l.said.result(ctx, l.what, err)
		if err != nil {
			retry.longest = l.interval()
			if !sleep(ctx, retry.next()) {
				return
			}
			continue
		}
		retry.reset()
		if !l.idle(ctx) {
			return
		}
	}
}

func (l *loop) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.do(ctx)
}

// idle waits for the next time, or for a kick.
func (l *loop) idle(ctx context.Context) bool {
	wait := jittered(l.interval(), l.random)
	pause := min(l.pause, wait)
	if !sleep(ctx, pause) {
		return false
	}
	timer := time.NewTimer(wait - pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.kick:
	case <-timer.C:
	}
	return true
}

// repeatAfter is when something that is still so is logged again.
const repeatAfter = 10 * time.Minute

// said keeps the log short: the same thing is said once in a while.
type said struct {
	mu   sync.Mutex
	last map[string]saying
}

type saying struct {
	text string
	at   time.Time
}

// again says whether a text about a subject is due. The empty text is that there is nothing to say any more.
func (s *said) again(subject, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]saying{}
	}
	last := s.last[subject]
	if last.text == text && (text == "" || time.Since(last.at) < repeatAfter) {
		return false
	}
	s.last[subject] = saying{text: text, at: time.Now()}
	return true
}

// result logs that something has failed, or works again.
func (s *said) result(ctx context.Context, what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if !s.again(what, text) {
		return
	}
	log := klog.FromContext(ctx)
	if err != nil {
		log.Info("Failed, trying again", "doing", what, "reason", text)
		return
	}
	log.Info("Works again", "doing", what)
}
