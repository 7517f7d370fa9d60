// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// lasting is the implementation of Lasting.
type lasting struct {
	testing.TB // the methods that are not defined below panic
	ctx        context.Context
	cancel     context.CancelFunc

	mu       sync.Mutex
	said     strings.Builder
	failed   bool
	cleanups []func()
}

var last = newLasting()

func newLasting() *lasting {
	l := &lasting{}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Lasting returns a testing.TB for fixtures that the tests of a folder share: processes that these start are stopped after the last test, and errors
// that they report fail the run.
func Lasting() testing.TB { return last }

// end runs the cleanups, prints the log if something failed, and reports whether nothing failed.
func (l *lasting) end() (good bool) {
	l.cancel()
	for {
		l.mu.Lock()
		cleanups := l.cleanups
		l.cleanups = nil
		l.mu.Unlock()
		if len(cleanups) == 0 {
			break
		}
		for _, cleanup := range slices.Backward(cleanups) {
			cleanup()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed {
		fmt.Fprintf(os.Stderr, "What the tests share says:\n%s", l.said.String())
	}
	return !l.failed
}

func (l *lasting) Helper() {}

func (l *lasting) Name() string { return "shared" }

func (l *lasting) Context() context.Context { return l.ctx }

func (l *lasting) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "clusterhub-e2e-")
	if err != nil {
		panic(err)
	}
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (l *lasting) Failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *lasting) say(failed bool, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = l.failed || failed
	fmt.Fprintln(&l.said, text)
}

func (l *lasting) Log(args ...any) { l.say(false, fmt.Sprint(args...)) }

func (l *lasting) Logf(format string, args ...any) { l.say(false, fmt.Sprintf(format, args...)) }

func (l *lasting) Error(args ...any) { l.say(true, fmt.Sprint(args...)) }

func (l *lasting) Errorf(format string, args ...any) { l.say(true, fmt.Sprintf(format, args...)) }

// Fatal exits the program, as no test of its own exists that it could end. The cleanups run first, which print the logs of servers and stop them.
func (l *lasting) Fatal(args ...any) {
	l.Error(args...)
	l.end()
	panic(fmt.Sprint(args...))
}

func (l *lasting) Fatalf(format string, args ...any) { l.Fatal(fmt.Sprintf(format, args...)) }
