// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"sync"
)

// logLimit is how much of what a container says is kept, in bytes.
const logLimit = 32 << 20

// containerLog is what a container has said in all its lives. If that is too much, the beginning is dropped, and it says so.
type containerLog struct {
	namespace, pod, container string

	mu      sync.Mutex
	said    []byte
	dropped int
}

// Write implements io.Writer.
func (l *containerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, p...)
	if over := len(l.said) - logLimit; over > 0 {
		over = min(over+logLimit/4, len(l.said)) // not at each write
		l.said = append([]byte(nil), l.said[over:]...)
		l.dropped += over
	}
	return len(p), nil
}

// String is all that is kept.
func (l *containerLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		return fmt.Sprintf("… %d bytes were dropped …\n%s", l.dropped, l.said)
	}
	return string(l.said)
}

// tail is the end of it, as a termination message has it.
func (l *containerLog) tail(size int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.said[max(0, len(l.said)-size):])
}
