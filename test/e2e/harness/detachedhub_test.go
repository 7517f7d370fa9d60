// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// TestOpenDetached_RejectsTestsForOtherHub verifies that such tests are refused, as they would pass or fail for reasons other than those that
// they state.
func TestOpenDetached_RejectsTestsForOtherHub(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*localhub.Options)
		good   bool
	}{
		"nothing":                   {func(*localhub.Options) {}, true},
		"a flag that it has":        {func(c *localhub.Options) { c.HubAPIServerArgs = []string{"--agent-writes-burst=100000"} }, true},
		"a flag of hub-apiserver":   {func(c *localhub.Options) { c.HubAPIServerArgs = []string{"--agent-writes-burst=1"} }, false},
		"a flag of kube-apiserver":  {func(c *localhub.Options) { c.FrontArgs = []string{"--enable-bootstrap-token-auth"} }, false},
		"registration":              {func(c *localhub.Options) { c.HubControllerManagerArgs = nil }, false},
		"a flag of the controllers": {func(c *localhub.Options) { c.HubControllerManagerArgs = append(c.HubControllerManagerArgs, "--v=9") }, false},
	} {
		if _, err := openDetached(t.TempDir(), []func(*localhub.Options){test.change}); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDetachedHub_NamesTests verifies that the rows of detachedhub.tsv, which hack/test.sh reads, name tests that exist and that run on a detached
// hub.
func TestDetachedHub_NamesTests(t *testing.T) {
	all := readSources(t)
	rows := readList(t, "detachedhub.tsv")
	for _, row := range rows {
		test := row[0] + "." + row[1]
		switch {
		case all[test] == nil:
			t.Errorf("%q: test/e2e/%s has no %s", row, row[0], row[1])
		case !all.reaches(test, "harness.Hub", true):
			t.Errorf("%q: the test does not use the hub that the tests share", row)
		case all.reaches(test, "harness.OnlyLocal", true):
			t.Errorf("%q: harness.OnlyLocal skips the test on a detached hub", row)
		}
	}
	if len(rows) == 0 || !slices.IsSortedFunc(rows, slices.Compare) {
		t.Error("detachedhub.tsv has no rows, or they are not sorted")
	}
}
