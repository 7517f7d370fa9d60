// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newOptions() (*Options, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &Options{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: out}}, out
}

func TestAwait_IsSilentWhenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := newOptions()
		looks := 0
		err := o.Await(t.Context(), "it", func(context.Context) (bool, string, error) {
			looks++
			return looks == 2, "not yet", nil
		})
		if err != nil || looks != 2 || out.Len() > 0 {
			t.Errorf("%v after %d looks: %s", err, looks, out)
		}
	})
}

func TestAwait_ReportsProgressAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := newOptions()
		w := &WaitFlags{Timeout: QuietFor + 2*PollInterval}
		ctx, cancel := w.Limit(t.Context())
		defer cancel()
		err := o.Await(ctx, "it", func(context.Context) (bool, string, error) { return false, "not yet", nil })
		if err == nil || err.Error() != "waiting for it: not within --timeout=3s: not yet" {
			t.Errorf("got %v", err)
		}
		if got := out.String(); strings.Count(got, "Waiting for it: not yet ...") != 1 {
			t.Errorf("said %q", got)
		}
	})
}

func TestAwait_RetriesTransientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := newOptions()
		refused := &url.Error{Op: "Get", URL: "https://hub", Err: syscall.ECONNREFUSED}
		looks, wrong := 0, errors.New("wrong")
		err := o.Await(t.Context(), "it", func(context.Context) (bool, string, error) {
			looks++
			if looks == 1 {
				return false, "", refused
			}
			return false, "", wrong
		})
		if !errors.Is(err, wrong) || looks != 2 {
			t.Errorf("%v after %d looks", err, looks)
		}
	})
}

func TestAwait_IsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := newOptions()
		ctx, cancel := context.WithCancel(t.Context())
		err := o.Await(ctx, "it", func(context.Context) (bool, string, error) {
			cancel()
			return false, "", ctx.Err()
		})
		if err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("got %v", err)
		}
	})
}

// TestAwait_EscapesControlCharacters verifies that the reason that a wait prints, which an object or a pod provides, is escaped: the terminal shows control
// characters and does not act on them.
func TestAwait_EscapesControlCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, out := newOptions()
		w := &WaitFlags{Timeout: time.Minute}
		ctx, cancel := w.Limit(t.Context())
		defer cancel()
		looks := 0
		err := o.Await(ctx, "it", func(context.Context) (bool, string, error) {
			looks++
			if looks%2 == 0 {
				return false, "", &url.Error{Op: "Get", URL: "https://hub", Err: &net.OpError{Op: "dial", Err: errors.New("\x1b[1A\nb")}}
			}
			return false, "a\x1b[2J\u202e\nError: b", nil
		})
		said := out.String() + err.Error()
		if strings.Count(out.String(), "\n") < 2 || strings.Contains(said, "\x1b") || strings.Contains(said, "\u202e") || strings.Contains(said, "\nError") ||
			strings.Contains(said, "\nb") {
			t.Errorf("it says %q", said)
		}
		o.Warn("%s", "a\x1b[2J\nError: b")
		if got := out.String(); !strings.HasSuffix(got, "Warning: a\\x1b[2J\\nError: b\n") {
			t.Errorf("it warns %q", got)
		}
	})
}
