// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// TestOpenWorld_IsForFoldersWithItsFlags shows which folders ask for the hub of make world: the others get none, and start their own. No hub runs.
func TestOpenWorld_IsForFoldersWithItsFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "world")
	for name, test := range map[string]struct {
		dir    string
		change func(*localhub.Config)
		asks   bool
	}{
		"no world":          {"", func(*localhub.Config) {}, false},
		"no flags":          {missing, func(*localhub.Config) {}, true},
		"one of its flags":  {missing, func(c *localhub.Config) { c.HubAPIServerArgs = []string{"--agent-writes-burst=100000"} }, true},
		"another flag":      {missing, func(c *localhub.Config) { c.HubAPIServerArgs = []string{"--agent-writes-burst=1"} }, false},
		"other controllers": {missing, func(c *localhub.Config) { c.HubControllerManagerArgs = nil }, false},
		"one replica":       {missing, func(c *localhub.Config) { c.Replicas = 1 }, false},
		"a plain cluster":   {missing, func(c *localhub.Config) { c.Plain = true }, false},
	} {
		hub, err := openWorld(test.dir, []func(*localhub.Config){test.change})
		if hub != nil || (err != nil) != test.asks || err != nil && !strings.Contains(err.Error(), "make world") {
			t.Errorf("%s: got %v, %v", name, hub, err)
		}
	}
}
