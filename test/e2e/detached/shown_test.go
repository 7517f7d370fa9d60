// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/hack/docs/pages"
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/typing"
)

// shown returns the blocks of docs/detached.md that a test runs, as the page states, and whose first commands have these prefixes.
func shown(t *testing.T, test string, begin ...string) (blocks []pages.Block) {
	t.Helper()
	all := typing.RunBy(t, harness.Root, "test/e2e/detached", test)
	for _, begins := range begin {
		i := slices.IndexFunc(all, func(b pages.Block) bool { return strings.HasPrefix(b.Commands[0].Text, begins+" ") })
		if i < 0 {
			t.Fatalf("%s types no block that begins with %s", test, begins)
		}
		blocks = append(blocks, all[i])
	}
	return blocks
}

// installed is the output of a command that installs hub-operator: the first command on a management cluster.
const installed = "customresourcedefinition/clustermanagers.operator.open-cluster-management.io created\n…\ndeployment/hub-operator created\n"

// newReader returns a session of a user who runs the commands of docs/detached.md, with a context for each cluster, and the artifacts of the
// repository.
func newReader(t *testing.T, clusters map[string]*localhub.Instance) *typing.Session {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(harness.Must(filepath.Abs(filepath.Join(harness.Root, "artifacts")))(t), filepath.Join(dir, "artifacts")); err != nil {
		t.Fatal(err)
	}
	r := typing.New(t, dir, "HOME="+dir, "LC_ALL=C.UTF-8", "KUBECONFIG="+harness.WithContexts(t, clusters),
		"PATH="+harness.Must(filepath.Abs(harness.BinDir(t)))(t)+":"+os.Getenv("PATH"))
	r.StopsAtFailure = true
	return r
}

// withKubeconfig gives the reader a kubeconfig of a cluster's admin.
func withKubeconfig(t *testing.T, r *typing.Session, name string, of *localhub.Instance) {
	t.Helper()
	r.Write(name, harness.Must(os.ReadFile(of.AdminKubeconfig()))(t))
}
