// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubui

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/ui"
)

// TestCommand_ServesUsersWithToken verifies that the started program serves the page, the hub with the permissions of the user, and the probes, and
// does not log the token.
func TestCommand_ServesUsersWithToken(t *testing.T) {
	const token = "canary.of.ann"
	hub := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"path":"`+r.URL.Path+`","as":"`+r.Header.Get("Authorization")+`"}`)
	}))
	t.Cleanup(hub.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	at := make(chan [2]net.Addr, 1)
	o := &options{address: "127.0.0.1", hosts: []string{"hub.example.com"}, server: hub.URL, caFile: ca, health: "127.0.0.1:0", signOut: "/oauth2/sign_out",
		timeout: time.Second, out: &out, listening: func(page, health net.Addr) { at <- [2]net.Addr{page, health} }}
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx) }()
	var addresses [2]net.Addr
	select {
	case addresses = <-at:
	case err := <-ended:
		t.Fatal(err)
	}
	get := func(address net.Addr, path, authorization string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address.String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "hub.example.com"
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	if code, body := get(addresses[0], "/v/clusters", ""); code != http.StatusOK || !strings.Contains(body, "<title>Clusterhub</title>") {
		t.Errorf("the page is %d %s", code, body)
	}
	if code, body := get(addresses[0], "/hub/version", "Bearer "+token); code != http.StatusOK || body != `{"path":"/version","as":"Bearer `+token+`"}` {
		t.Errorf("the hub gives %d %s", code, body)
	}
	if code, _ := get(addresses[0], "/hub/version", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/hub/version": http.StatusNotFound, "/": http.StatusNotFound} {
		if code, _ := get(addresses[1], path, "Bearer "+token); code != want {
			t.Errorf("the probe %s gets %d", path, code)
		}
	}
	cancel()
	if err := <-ended; err != nil && err != http.ErrServerClosed {
		t.Error(err)
	}
	if !strings.Contains(out.String(), hub.URL) || strings.Contains(out.String(), token) {
		t.Errorf("it logs %s", out.String())
	}
}

func TestCommand_Flags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "--allowed-host is missing",
		"--allowed-host=a --address=0.0.0.0": "--address must be",
		"--allowed-host=a --port=-1":         "--port must be",
		"--allowed-host=a --hub-server=http://hub":                   "--hub-server must be an https URL",
		"--allowed-host=a --hub-server=https://ann:secret@hub":       "--hub-server must be an https URL",
		"--allowed-host=a --hub-ca-file=nowhere":                     "--hub-ca-file",
		"--allowed-host=a --hub-timeout=1h":                          "--hub-timeout must be",
		"--allowed-host=a --sign-out-path=//evil.example":            "--sign-out-path must be",
		"--allowed-host=a --sign-out-path=https://evil.example":      "--sign-out-path must be",
		"--port=0 --allowed-host=https://a":                          "is not a name of a server",
		"--port=0 --allowed-host=a --health-probe-bind-address=nope": "--health-probe-bind-address",
		"--allowed-host=a more":                                      "unknown command",
	} {
		cmd := NewCommand()
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if ui.WatchTTL > 10*time.Minute {
		t.Errorf("a user whose login has ended sees more for %s", ui.WatchTTL)
	}
}
