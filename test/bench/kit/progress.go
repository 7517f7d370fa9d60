// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Progress prints the current step and how long it took.
type Progress struct {
	mu     sync.Mutex
	begun  time.Time
	text   string
	spoken time.Time
}

// Step begins a step and ends the previous one.
func (p *Progress) Step(format string, args ...any) {
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text, p.begun, p.spoken = fmt.Sprintf(format, args...), time.Now(), time.Now()
	fmt.Printf("  %s …\n", p.text)
}

// At prints the progress of the step, at most every five seconds.
func (p *Progress) At(done, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.spoken) > 5*time.Second {
		p.spoken = time.Now()
		fmt.Printf("    %d of %d, %.0f s\n", done, all, time.Since(p.begun).Seconds())
	}
}

// end prints the duration of the step, if it was long.
func (p *Progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := time.Since(p.begun); p.text != "" && took > 2*time.Second {
		fmt.Printf("    took %.1f s\n", took.Seconds())
	}
	p.text = ""
}

// Sleep waits for a time, or until the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
