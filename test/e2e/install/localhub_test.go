// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestLocalHub_Errors covers the errors that a newcomer sees.
func TestLocalHub_Errors(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, c localhub.Options) string {
		t.Helper()
		h, err := localhub.Start(t.Context(), c)
		if err == nil {
			h.Stop()
			t.Fatal("the hub has started")
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %v", err)
		}
		return err.Error()
	}
	t.Run("a missing tool", func(t *testing.T) {
		c := harness.HubConfig(t.TempDir())
		c.BinDir = t.TempDir()
		harness.Contains(t, start(t, c), "is missing", "make build kube")
	})
	t.Run("a taken port", func(t *testing.T) {
		listener := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer listener.Close()
		port := listener.Addr().(*net.TCPAddr).Port
		c := harness.HubConfig(t.TempDir())
		ports := harness.Must(json.Marshal(map[string]int{"kube-apiserver": port}))(t)
		if err := os.WriteFile(filepath.Join(c.Dir, "ports.json"), ports, 0o600); err != nil {
			t.Fatal(err)
		}
		harness.Contains(t, start(t, c), fmt.Sprint(port), "kube-apiserver", "taken", "ports.json")
	})
	t.Run("a process that dies at its start", func(t *testing.T) {
		c := harness.HubConfig(t.TempDir())
		c.FrontArgs = []string{"--no-such-flag"}
		harness.Contains(t, start(t, c), "kube-apiserver exited", "no-such-flag", "kube-apiserver.log")
	})
}
