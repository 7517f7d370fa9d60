// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// repeatAfter is when something that is still so is logged again.
const repeatAfter = 10 * time.Minute

// Said keeps the log short: the same thing is said once in a while. Its zero value is ready for use.
type Said struct {
	mu   sync.Mutex
	last map[string]saying
}

type saying struct {
	text string
	at   time.Time
}

// Again says whether a text about a subject is due. The empty text is that there is nothing to say any more.
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

// Result logs that something has failed, or works again.
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
		log.Info("Failed, trying again", "doing", what, "reason", text)
		return
	}
	log.Info("Works again", "doing", what)
}
