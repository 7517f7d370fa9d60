// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// TestOpenDetached_RefusesTestsThatNeedAnotherHub: they would pass or fail for something else than what they say.
func TestOpenDetached_RefusesTestsThatNeedAnotherHub(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*localhub.Config)
		good   bool
	}{
		"nothing":                   {func(*localhub.Config) {}, true},
		"a flag that it has":        {func(c *localhub.Config) { c.HubAPIServerArgs = []string{"--agent-writes-burst=100000"} }, true},
		"a flag of hub-apiserver":   {func(c *localhub.Config) { c.HubAPIServerArgs = []string{"--agent-writes-burst=1"} }, false},
		"a flag of kube-apiserver":  {func(c *localhub.Config) { c.FrontArgs = []string{"--enable-bootstrap-token-auth"} }, false},
		"registration":              {func(c *localhub.Config) { c.HubControllerManagerArgs = nil }, false},
		"a flag of the controllers": {func(c *localhub.Config) { c.HubControllerManagerArgs = append(c.HubControllerManagerArgs, "--v=9") }, false},
	} {
		if _, err := openDetached(t.TempDir(), []func(*localhub.Config){test.change}); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
