// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/clusterhub/clusterhub/pkg/ui"
)

// openBrowser opens a link that contains a secret. All users of the machine can read the arguments of a process, so the browser gets the name of a
// file that only the user can read, and that redirects to the link. The file is deleted when the secret has been used or has expired.
func openBrowser(ctx context.Context, link string, used <-chan struct{}) error {
	name, args, err := opener()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kubectl-hub-ui-") // mode 0700
	if err != nil {
		return err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	if err := os.WriteFile(file, []byte(leadsTo(link)), 0o600); err != nil {
		remove()
		return err
	}
	cmd := exec.Command(name, append(args, file)...) // not of the context: it may be the browser itself
	ignoreInterrupt(cmd)
	if err := cmd.Start(); err != nil {
		remove()
		return err
	}
	go func() { _ = cmd.Wait() }()
	go func() {
		defer remove()
		select {
		case <-used:
		case <-ctx.Done():
		case <-time.After(ui.TokenTTL):
		}
	}()
	return nil
}

// leadsTo returns a page that redirects to a link.
func leadsTo(link string) string {
	l := html.EscapeString(link)
	return fmt.Sprintf(`<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>kubectl hub ui</title>`+
		`<meta http-equiv="refresh" content="0; url=%s"><a href="%s">Open the page of kubectl hub ui</a>`+"\n", l, l)
}

// opener returns the program that opens files in the user's browser.
func opener() (name string, args []string, err error) {
	switch runtime.GOOS {
	case "darwin":
		return "open", nil, nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}, nil
	}
	// Without a display, xdg-open would start a browser in this terminal.
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return "", nil, errors.New("there is no screen")
	}
	return "xdg-open", nil, nil
}
