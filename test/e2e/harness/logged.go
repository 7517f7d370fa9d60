// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/leak"
)

// Logged has the logs of programs, and the secrets that must not appear in them.
type Logged struct {
	Logs    map[string][]byte
	Secrets leak.Secrets
}

// NewLogged returns a Logged without logs and secrets.
func NewLogged() *Logged { return &Logged{Logs: map[string][]byte{}, Secrets: leak.Secrets{}} }

// Add adds the secrets in a text.
func (l *Logged) Add(t *testing.T, name, text string) {
	t.Helper()
	if l.Secrets.AddFrom(name, []byte(text)) == 0 {
		t.Errorf("there is no secret in the %s", name)
	}
}

// Look searches each log for the secrets. It fails if a wanted secret or a log is missing, as the search would show nothing then.
func (l *Logged) Look(t *testing.T, wanted ...string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(l.Secrets))
	for _, want := range wanted {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("there is no secret %q: %v", want, names)
		}
	}
	for name, log := range l.Logs {
		t.Logf("%s: looking for %d secrets in %d bytes", name, len(names), len(log))
		for _, found := range l.Secrets.Find(log) {
			t.Errorf("%s logs a secret: %s", name, found)
		}
		if strings.HasPrefix(name, "cluster-provider") || strings.HasPrefix(name, "hub-agent ") {
			continue // these logs have no requests
		}
		if len(log) < 1000 || !strings.Contains(string(log), `"Request"`) {
			t.Errorf("%s logs no requests:\n%.2000s", name, log)
		}
	}
}
