// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"sync"
)

// logLimit is the largest size of a container's log in bytes.
const logLimit = 32 << 20

// containerLog is the output of a container, including its restarts. If it is too long, the beginning is dropped, and a line reports that.
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

// String returns the log.
func (l *containerLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		return fmt.Sprintf("… %d bytes were dropped …\n%s", l.dropped, l.said)
	}
	return string(l.said)
}

// tail returns the end of the log, as in a termination message.
func (l *containerLog) tail(size int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.said[max(0, len(l.said)-size):])
}
