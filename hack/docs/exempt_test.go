// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
)

// untried are commands that no test types: they build, test or measure this repository, or are of other programs. Each is the words with
// which it begins.
var untried = []string{".ci/run", "cosign sign", "cosign verify", "export", "git tag", "go run ./test/bench", "hack/test.sh", "make", "ssh"}

// TestDocs_ExemptBlocksAreUntypable: a comment exempts a block only if all its commands are in a short list.
func TestDocs_ExemptBlocksAreUntypable(t *testing.T) {
	for _, b := range blocksOf(t) {
		if b.NotRun == "" {
			continue
		}
		if err := untypable(b); err != nil {
			t.Error(err)
		}
	}
}

// untypable says what is wrong with the exemption of a block.
func untypable(b pages.Block) error {
	for _, c := range b.Commands {
		simple, err := pages.Simple(c.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Where(), err)
		}
		for _, words := range simple {
			typed := strings.Join(words, " ")
			if !slices.ContainsFunc(untried, func(begins string) bool { return strings.HasPrefix(typed+" ", begins+" ") }) {
				return fmt.Errorf("%s: %s: a test has to type it: the comment before the block can only say which (run by)", c.Where(), typed)
			}
		}
	}
	return nil
}

func TestUntypable_Errors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"what no test types":        {text: "A=b make bench # c"},
		"a program of others":       {text: "cosign sign --key=a"},
		"one that a test could run": {text: "make bench; kubectl get pods", want: "kubectl get pods: a test"},
		"what follows one":          {text: "make | kubectl apply -f -", want: "kubectl apply -f -: a test"},
		"another of the same":       {text: "makes", want: "makes: a test"},
		"git, but not that":         {text: "git clone x", want: "git clone x: a test"},
	} {
		err := untypable(pages.Block{NotRun: "a cloud", Commands: []pages.Command{{Text: "make"}, {Text: c.text}}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
