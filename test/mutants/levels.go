// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Levels of tests.
const (
	levelWiring = "wiring"
	levelUnit   = "unit"
	levelE2E    = "e2e"
)

// wiring are the packages of the level wiring. The first two need no server.
var wiring = []string{"hack/verify/manifests", "test/wiring", "pkg/apiserver/options", "pkg/controllers/manager", "pkg/deploy", "pkg/local/hub"}

// cost is the time that commands have taken.
type cost struct{ wall, cpu time.Duration }

func (c *cost) add(more cost) { c.wall, c.cpu = c.wall+more.wall, c.cpu+more.cpu }

func (c cost) String() string {
	return fmt.Sprintf("%.0f s, %.0f processor seconds", c.wall.Seconds(), c.cpu.Seconds())
}

// runner runs the tests of levels in a tree.
type runner struct {
	tree     *tree
	timeout  time.Duration
	packages []goPackage
}

// goPackage is a package of the tree.
type goPackage struct {
	ImportPath, Dir                                               string
	TestGoFiles, XTestGoFiles, Imports, TestImports, XTestImports []string
	Module                                                        *struct{ Path string }
}

// command returns a command of go in a folder.
func (r *runner) command(ctx context.Context, folder string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS"), "CGO_ENABLED=0", "TEST_BIN_DIR="+filepath.Join(r.tree.original, "_output", "bin"))
	// The whole group, so that tests end, and not only go.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// readPackages reads which packages import which.
func (r *runner) readPackages(ctx context.Context) error {
	out, err := r.command(ctx, r.tree.root, "list", "-e", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		p.Dir, err = filepath.Rel(r.tree.root, p.Dir)
		if err != nil {
			return err
		}
		r.packages = append(r.packages, p)
	}
}

// own returns the folders of the packages that a fault changes, and of the tests of charts if it changes those.
func (r *runner) own(f *fault) (folders []string) {
	for _, e := range f.Edits {
		// Of another module, so that it imports nothing. The level wiring has others that read manifests.
		if strings.HasPrefix(e.File, "artifacts/charts/") {
			folders = append(folders, "hack/charts")
		}
		// A file other than Go belongs to the next parent folder that is a package, which embeds it.
		for folder := filepath.Dir(e.File); folder != "."; folder = filepath.Dir(folder) {
			if slices.ContainsFunc(r.packages, func(p goPackage) bool { return p.Dir == folder }) {
				folders = append(folders, folder)
				break
			}
		}
	}
	folders = append(folders, f.Packages...)
	slices.Sort(folders)
	return slices.Compact(folders)
}

// importers returns the folders of the packages that import some of these folders: all of them, or those whose tests do, too.
func (r *runner) importers(folders []string, tests bool) (found []string) {
	var paths []string
	for _, p := range r.packages {
		if slices.Contains(folders, p.Dir) {
			paths = append(paths, p.ImportPath)
		}
	}
	for _, p := range r.packages {
		imports := p.Imports
		if tests {
			imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		}
		if !slices.Contains(folders, p.Dir) && slices.ContainsFunc(imports, func(i string) bool { return slices.Contains(paths, i) }) {
			found = append(found, p.Dir)
		}
	}
	return found
}

// tested leaves folders out that have no tests, or end-to-end tests.
func (r *runner) tested(folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		for _, slow := range []string{"test/e2e", "test/kubelet", "test/netns", "test/detachedhub"} {
			if folder == slow || strings.HasPrefix(folder, slow+"/") {
				return true
			}
		}
		return slices.ContainsFunc(r.packages, func(p goPackage) bool { return p.Dir == folder && len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 })
	})
}

// try plants a fault and runs the levels until a test fails.
func (r *runner) try(ctx context.Context, f *fault, levels []string, keep bool) (found result) {
	found.fault = f
	revert, err := f.plant(r.tree.root)
	if err != nil {
		found.err = err
		return found
	}
	defer func() {
		if !keep || ctx.Err() != nil {
			found.err = errors.Join(found.err, revert())
		}
	}()
	own := r.own(f)
	found.err = r.compile(ctx, f, own, &found.cost)
	if found.err != nil {
		return found
	}
	for _, level := range levels {
		var rounds [][]string
		switch level {
		case levelWiring:
			rounds = [][]string{wiring[:2], wiring[2:]}
		case levelUnit:
			rounds = [][]string{r.tested(own), r.tested(r.importers(own, true))}
		case levelE2E:
			if f.E2E != "" {
				found.level, found.test, found.err = r.endToEnd(ctx, f, &found.cost)
			}
		}
		for _, round := range rounds {
			test, err := r.first(ctx, f, revert, round, &found.cost)
			if err != nil {
				found.err = err
				return found
			}
			if test != "" {
				found.level, found.test = level, test
				return found
			}
		}
		if found.level != "" || found.err != nil {
			return found
		}
	}
	return found
}

// compile returns an error if the product does not compile with a fault. Then it is no fault that tests have to catch.
func (r *runner) compile(ctx context.Context, f *fault, own []string, spent *cost) error {
	product := slices.DeleteFunc(slices.Concat(own, r.importers(own, false)), func(folder string) bool {
		return !slices.ContainsFunc(r.packages, func(p goPackage) bool { return p.Dir == folder })
	})
	for _, e := range f.Edits {
		if strings.HasSuffix(e.File, ".go") {
			// It compiles, and links nothing.
			args := append([]string{"list", "-export", "-f", "{{.ImportPath}}"}, patterns(product)...)
			cmd := r.command(ctx, r.tree.root, args...)
			if out, err := measured(cmd, spent); err != nil {
				return fmt.Errorf("fault %s does not compile: %w: %s", f.Name, err, shorten(out))
			}
			return nil
		}
	}
	return nil
}

// errWithoutFault is the error of a test that fails without any fault. No test shows anything then.
var errWithoutFault = errors.New("a test fails without any fault, because of the tree or of a machine that is too slow: no fault can be tried")

// first returns the first test that fails with a fault, each time, and passes without it; empty if all pass.
func (r *runner) first(ctx context.Context, f *fault, revert func() error, folders []string, spent *cost) (string, error) {
	failed, err := r.test(ctx, folders, spent)
	if err != nil || failed == nil {
		return "", err
	}
	var flags []string
	if failed.timedOut { // without the fault not from the cache, which does not know how slow the machine is now
		flags = append(flags, "-count", "1")
	}
	if top, _, _ := strings.Cut(failed.test, "/"); top != thePackage {
		flags = append(flags, "-run", "^"+top+"$")
	}
	switch again, err := r.test(ctx, []string{failed.folder}, spent, flags...); {
	case err != nil || ctx.Err() != nil:
		return "", cmp.Or(err, ctx.Err())
	case again == nil:
		return "", fmt.Errorf("%s has failed, and passes when it runs again with the same fault", failed)
	}
	if err := revert(); err != nil {
		return "", err
	}
	without, err := r.test(ctx, []string{failed.folder}, &cost{}, flags...)
	if err != nil {
		return "", err
	}
	if without != nil {
		return "", fmt.Errorf("%w: %s", errWithoutFault, without)
	}
	_, err = f.plant(r.tree.root)
	return failed.String(), err
}
