// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// programEnv makes the test binary a program whose behavior is the value.
const programEnv = "TEST_COMMAND_PROGRAM"

// TestMain runs a program, or the tests. Signals and output need a process of their own.
func TestMain(m *testing.M) {
	does := os.Getenv(programEnv)
	if does == "" {
		os.Exit(m.Run())
	}
	os.Args = os.Args[:1]
	os.Exit(Main(&cobra.Command{Use: "program", RunE: func(cmd *cobra.Command, _ []string) error {
		switch does {
		case "fail":
			return errors.New("it cannot:\n\tno reason")
		case "say no":
			return fmt.Errorf("to whom asks: %w", &Exit{Code: 2})
		case "wait":
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			<-cmd.Context().Done()
		case "hang":
			// Go's handler of a signal that ends the process accepts more of it, on a small stack: they must not come in a row.
			for range time.Tick(10 * time.Millisecond) {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}
		}
		return nil
	}}))
}

func TestMain_ExitCodes(t *testing.T) {
	for does, want := range map[string]struct{ state, says string }{
		"succeed": {"exit status 0", ""},
		"fail":    {"exit status 1", "Error: it cannot: no reason\n"},
		"say no":  {"exit status 2", ""},
		"wait":    {"exit status 0", ""},
		"hang":    {"signal: terminated", ""},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), programEnv+"="+does)
		var says strings.Builder
		cmd.Stderr = &says
		_ = cmd.Run()
		if got := cmd.ProcessState.String(); got != want.state || says.String() != want.says {
			t.Errorf("%s: %s, %q", does, got, says.String())
		}
	}
}

// Servers write parts of errors. A terminal shows them, and does not execute control characters in them.
func TestErrorLine_IsOneEscapedLine(t *testing.T) {
	got := ErrorLine(fmt.Errorf("a\n\tb: %w", errors.New("\x1b[2Jc\u202ed")))
	if want := `a b: \x1b[2Jc\u202ed`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCheckProxyURL_HidesPassword(t *testing.T) {
	for url, ok := range map[string]bool{
		"": true, "http://proxy:3128": true, "https://user:secret@proxy": true, "socks5://proxy:1080": true,
		"ftp://user:secret@proxy": false, "proxy:3128": false, "http://": false, "http://user:secret@%zz": false, "socks4://proxy": false,
	} {
		err := CheckProxyURL(url)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
