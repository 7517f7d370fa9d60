// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/typing"
)

// first is the page that readers start with. The others are in the order of their names.
const first = "README.md"

// withNode has the pages on which a cluster runs pods, and the name of that cluster.
var withNode = map[string]string{"docs/cluster-providers.md": "hub", "docs/kubectl-hub.md": "c1"}

// TestDocs_CommandOutputMatchesPages runs the commands of the pages on one hub: `make up` with all options. A comment in a page exempts a block,
// and has commands that the page needs: see docs/contributing.md.
func TestDocs_CommandOutputMatchesPages(t *testing.T) {
	files := harness.Must(pages.Files(harness.Root))(t)
	slices.SortStableFunc(files, func(a, b string) int {
		if a == first || b == first {
			return map[bool]int{true: -1, false: 1}[a == first]
		}
		return strings.Compare(a, b)
	})
	h := start(t)
	for _, file := range files {
		blocks := slices.DeleteFunc(harness.Must(pages.Read(harness.Root, file))(t), func(b pages.Block) bool { return b.RunBy != "" })
		if slices.ContainsFunc(blocks, func(b pages.Block) bool { return len(b.Commands) > 0 && b.NotRun == "" }) {
			t.Run(file, func(t *testing.T) {
				if cluster := withNode[file]; cluster != "" {
					h.startNode(t, cluster)
				}
				typing.New(t, h.folder(t), h.env()...).Types(blocks)
			})
		}
	}
}

// TestDocs_LargerHub runs the commands of docs/contributing.md for a hub of several processes of each kind, which starts and stops there.
func TestDocs_LargerHub(t *testing.T) {
	h := newHome(t)
	session := typing.New(t, h.dir, h.env()...)
	session.StopsAtFailure = true
	session.Types(typing.RunBy(t, harness.Root, "test/e2e/docs", t.Name()))
}

// home is the folder in which the commands run: it has the files of a clone of the repository after `make build`.
type home struct {
	dir   string
	goEnv []string
}

// newHome returns a home without a hub. A hub that is started there is stopped when the test ends.
func newHome(t *testing.T) home {
	t.Helper()
	h := home{dir: t.TempDir(), goEnv: goEnv(t)}
	root := harness.Must(filepath.Abs(harness.Root))(t)
	for _, entry := range harness.Must(os.ReadDir(root))(t) {
		if !strings.HasPrefix(entry.Name(), ".") && entry.Name() != "_output" {
			link(t, filepath.Join(root, entry.Name()), filepath.Join(h.dir, entry.Name()))
		}
	}
	h.owns(t, "artifacts")
	if err := os.Mkdir(filepath.Join(h.dir, "_output"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, harness.BinDir(t), filepath.Join(h.dir, "_output", "bin"))
	t.Cleanup(func() {
		if t.Failed() {
			h.sayLogs(t)
		}
		out, err := h.localhub("clean")
		if err != nil {
			t.Errorf("localhub clean: %v: %s", err, out)
		}
	})
	return h
}

// start starts the hub, as `make up` does.
func start(t *testing.T) home {
	t.Helper()
	h := newHome(t)
	started := time.Now()
	if out, err := h.localhub("up", "--images="+harness.ImagesDir(), "--detached", "--edge", "--clusters=1"); err != nil {
		t.Fatalf("localhub up: %v: %s", err, out)
	}
	t.Logf("the hub is up after %s", time.Since(started).Round(time.Second))
	h.addContexts(t)
	return h
}

// localhub runs the commands of make up and make clean.
func (h home) localhub(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("_output", "bin", "localhub"), args...)
	cmd.Dir, cmd.Env = h.dir, h.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// env returns the variables that `make up` prints, without the environment of the test.
func (h home) env() []string {
	return append(slices.Clone(h.goEnv), "HOME="+h.dir, "KUBECACHEDIR="+filepath.Join(h.dir, "_output", "cache"), "TMPDIR="+h.dir, "LC_ALL=C.UTF-8",
		"KUBECONFIG=_output/hub/admin.kubeconfig", "PATH="+filepath.Join(h.dir, "_output", "bin")+":"+os.Getenv("PATH"))
}

// folder returns a new folder with links to everything in the home.
func (h home) folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, entry := range harness.Must(os.ReadDir(h.dir))(t) {
		link(t, filepath.Join(h.dir, entry.Name()), filepath.Join(dir, entry.Name()))
	}
	return dir
}
