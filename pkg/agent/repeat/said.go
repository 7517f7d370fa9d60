// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// repeatAfter is the interval after which an unchanged message is logged again.
const repeatAfter = 10 * time.Minute

// Said keeps the log short: it allows the same message from time to time only. Its zero value is ready for use.
type Said struct {
	mu   sync.Mutex
	last map[string]saying
}

type saying struct {
	text string
	at   time.Time
}

// Again reports whether a text about a subject must be logged. An empty text means that the problem is gone.
func (s *Said) Again(subject, text string) bool {
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

// Result logs an error, or that an operation succeeds again.
func (s *Said) Result(ctx context.Context, what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if !s.Again(what, text) {
		return
	}
	log := klog.FromContext(ctx)
	if err != nil {
		log.Info("Failed, retrying", "doing", what, "reason", text)
		return
	}
	log.Info("Succeeded again", "doing", what)
}
