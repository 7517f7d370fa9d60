// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
)

// untried are commands that no test runs: they build, test or measure this repository, or are of other programs. Each is the words with
// which it begins.
var untried = []string{".ci/run", "cosign sign", "cosign verify", "export", "git tag", "go run ./test/bench", "hack/test.sh", "make", "ssh"}

// TestDocs_ExemptBlocksHaveATestOfTheirLike: of what test/e2e/docs does not type, another test runs the like, which the comment names. What no
// test can run is in a short list.
func TestDocs_ExemptBlocksHaveATestOfTheirLike(t *testing.T) {
	named, untriedBlocks := 0, 0
	for _, b := range blocksOf(t) {
		if b.NotRun == "" {
			continue
		}
		if b.Like != "" {
			named++
		} else {
			untriedBlocks++
		}
		if err := like(b); err != nil {
			t.Error(err)
		}
	}
	t.Logf("the like of %d blocks is run by another test, and that of %d by none", named, untriedBlocks)
}

// like says what is wrong with the exemption of a block.
func like(b pages.Block) error {
	if b.Like == "" {
		for _, c := range b.Commands {
			simple, err := pages.Simple(c.Text)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Where(), err)
			}
			for _, words := range simple {
				typed := strings.Join(words, " ")
				if !slices.ContainsFunc(untried, func(begins string) bool { return strings.HasPrefix(typed+" ", begins+" ") }) {
					return fmt.Errorf("%s: %s: the comment before the block has to end with the test that runs its like: ; FOLDER TestName", c.Where(), typed)
				}
			}
		}
		return nil
	}
	_, there, err := namedTest(b.Like)
	if err == nil && !there {
		err = fmt.Errorf("%s: the comment before the block names the test %s, which is not there", b.Where(), b.Like)
	}
	return err
}

// namedTest is what is in the files of tests of a folder, and whether the test is among them: named is "FOLDER TestName".
func namedTest(named string) (source string, there bool, err error) {
	folder, name, _ := strings.Cut(named, " ")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return "", false, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", false, err
		}
		source += string(data)
	}
	there = slices.ContainsFunc(testFunc.FindAllStringSubmatch(source, -1), func(match []string) bool { return match[1] == name })
	return source, there, nil
}

func TestLike_SaysWhatIsWrong(t *testing.T) {
	commands := func(texts ...string) (all []pages.Command) {
		for _, text := range texts {
			all = append(all, pages.Command{Text: text})
		}
		return all
	}
	for name, c := range map[string]struct {
		block pages.Block
		want  string
	}{
		"a test":                    {block: pages.Block{Like: "hack/docs TestLike_SaysWhatIsWrong", Commands: commands("kubectl get pods")}},
		"a test of another folder":  {block: pages.Block{Like: "hack/docs/pages TestLike_SaysWhatIsWrong"}, want: "names the test"},
		"no folder":                 {block: pages.Block{Like: "hack/nowhere TestLike_SaysWhatIsWrong"}, want: "names the test"},
		"the beginning of a test":   {block: pages.Block{Like: "hack/docs TestLike"}, want: "names the test"},
		"what no test runs":         {block: pages.Block{Commands: commands("make", "A=b make bench # c", "git tag v1", "cosign sign --key=a")}},
		"one that a test could run": {block: pages.Block{Commands: commands("make bench", "kubectl get pods")}, want: "kubectl get pods: the comment"},
		"what follows one":          {block: pages.Block{Commands: commands("make | kubectl apply -f -")}, want: "kubectl apply -f -: the comment"},
		"another of the same":       {block: pages.Block{Commands: commands("makes")}, want: "makes: the comment"},
		"git, but not that":         {block: pages.Block{Commands: commands("git clone x")}, want: "git clone x: the comment"},
	} {
		c.block.NotRun = "a cloud"
		if err := like(c.block); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
