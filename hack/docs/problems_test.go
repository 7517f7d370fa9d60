// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
)

// TestProblems_AreDetected: the tests of the pages can fail.
func TestProblems_AreDetected(t *testing.T) {
	for typed, want := range map[string]string{
		"kubectl hub get clusters --context hub":            "",
		"kubectl hub join --hub-token eyJ… --works=admin …": "",
		"make up DETACHED=1":                                "",
		"go run ./test/bench --only=j --fleet=100":          "",
		"kubectl apply -k artifacts/deploy/base":            "",
		"kubectl hub get no-such-thing":                     "no-such-thing",
		"kubectl hub get clusters --no-such-flag":           "unknown flag: --no-such-flag",
		"kubectl hub why cluster":                           "arg",
		"kubectl hub":                                       "not a command by itself",
		"kubectl hub get":                                   "not a command by itself",
		"kubectl hub access blue -n teams --ttl soon":       `"soon"`,
		"kubectl gett pods":                                 "kubectl gett is unknown",
		"kubectl apply -k artifacts/deploy/bas":             "artifacts/deploy/bas is not in the repository",
		"helm instal a artifacts/charts/clusterhub":         "helm instal is unknown",
		"make upp":                                            "no target upp",
		"make up DETACH=1":                                    "does not use DETACH",
		"go run ./test/bench --olny=j":                        "no flag --olny",
		"_output/bin/localhub up --front=2":                   "no flag --front",
		"rm -rf x | kubectl-hub top":                          "kubectl-hub is unknown",
		"kubectl get pods 'a":                                 "a quote does not end",
		"kubectl get pods | kubectl hub get clusters --frmat": "unknown flag: --frmat",
	} {
		c := pages.Command{Page: "a.md", Line: 2, Text: typed}
		got := problems(pages.Block{Page: "a.md", Line: 1, Language: "console", NotRun: "a reason", Commands: []pages.Command{c}})
		if said := strings.Join(got, "\n"); (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", typed, said, want)
		}
	}
	for name, b := range map[string]pages.Block{
		"no language":        {Text: "$ make up"},
		"another language":   {Text: "make up", Language: "bash"},
		"commands in a text": {Text: "a\nkubectl get pods", Language: "text"},
		"no commands":        {Text: "make up", Language: "console"},
		"nothing to exempt":  {Text: "a: b", Language: "yaml", NotRun: "a cloud"},
	} {
		if got := problems(b); len(got) == 0 {
			t.Errorf("%s: nothing is wrong", name)
		}
	}
}
