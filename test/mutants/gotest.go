// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/test/await"
)

// thePackage is the name of the test if no test of a package failed by itself.
const thePackage = "the package"

// failure is a test that has failed.
type failure struct {
	// folder is the folder of the package; firstFailure sets its import path.
	folder, test string
	// timedOut reports whether a limit of time may be what made it fail: that of go test, or that of what tests wait for.
	timedOut bool
}

func (f *failure) String() string {
	text := f.test + " of " + f.folder
	if f.timedOut {
		text += " (timed out)"
	}
	return text
}

// test runs the tests of packages, with flags, until the first fails. It returns nil if all pass.
func (r *runner) test(ctx context.Context, folders []string, spent *cost, flags ...string) (*failure, error) {
	byModule := map[string][]string{}
	for _, folder := range folders {
		module, err := findRoot(filepath.Join(r.tree.root, folder))
		if err != nil {
			return nil, err
		}
		byModule[module] = append(byModule[module], filepath.Join(r.tree.root, folder))
	}
	for _, module := range slices.Sorted(maps.Keys(byModule)) {
		args := slices.Concat([]string{"test", "-json", "-failfast", "-vet=off", "-timeout", r.timeout.String()}, flags, byModule[module])
		failed, err := r.goTest(ctx, module, args, spent)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			i := slices.IndexFunc(folders, func(folder string) bool { return strings.HasSuffix(failed.folder, "/"+folder) })
			if i < 0 {
				return nil, fmt.Errorf("go test has failed for %s, which is none of %q", failed.folder, folders)
			}
			failed.folder = folders[i]
			return failed, nil
		}
	}
	return nil, nil
}

// goTest runs go test in a module, and ends it when a test has failed.
func (r *runner) goTest(ctx context.Context, module string, args []string, spent *cost) (*failure, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := r.command(ctx, module, args...)
	// A test that go ends may leave a process that has its output open.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var rest bytes.Buffer
	cmd.Stdout, cmd.Stderr = writer, &rest
	began := time.Now()
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return nil, err
	}
	failed, text, readErr := firstFailure(reader)
	if failed != nil {
		cancel()
	}
	err = cmd.Wait()
	spent.add(cost{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()})
	switch {
	case failed != nil:
		return failed, nil
	case readErr != nil:
		return nil, readErr
	case err != nil:
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, shorten(append([]byte(text), rest.Bytes()...)))
	}
	return nil, nil
}

// firstFailure reads what go test -json prints up to the first test that has failed. Packages that do not compile are an error.
func firstFailure(in io.Reader) (failed *failure, output string, err error) {
	timedOut := map[string]bool{}
	for decoder := json.NewDecoder(in); ; {
		var e struct {
			Action, Package, Test, Output, FailedBuild string
			Elapsed                                    float64
		}
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil, output, nil
		} else if err != nil {
			return nil, output, err
		}
		switch {
		case strings.HasPrefix(e.Output, "panic: test timed out"):
			timedOut[e.Package] = true
		case e.Action == "build-output":
			output += e.Output
		case e.FailedBuild != "":
			return nil, output, fmt.Errorf("tests do not compile: %s", shorten([]byte(output)))
		case e.Action == "fail":
			if e.Test == "" {
				e.Test = thePackage
			}
			return &failure{folder: e.Package, test: e.Test, timedOut: timedOut[e.Package] || e.Elapsed >= await.Limit.Seconds()}, output, nil
		}
	}
}

// endToEnd builds the programs with a fault and runs the end-to-end tests of its folder.
func (r *runner) endToEnd(ctx context.Context, f *fault, spent *cost) (level, test string, err error) {
	bin := filepath.Join(r.tree.root, "_output", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", "", err
	}
	others, err := os.ReadDir(filepath.Join(r.tree.original, "_output", "bin"))
	if err != nil {
		return "", "", err
	}
	for _, other := range others {
		path := filepath.Join(bin, other.Name())
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", "", err
		}
		if _, err := os.Stat(filepath.Join(r.tree.root, "cmd", other.Name())); err == nil {
			continue // it is built
		}
		if err := os.Symlink(filepath.Join(r.tree.original, "_output", "bin", other.Name()), path); err != nil {
			return "", "", err
		}
	}
	if out, err := measured(r.command(ctx, r.tree.root, "build", "-o", bin+"/", "./cmd/..."), spent); err != nil {
		return "", "", fmt.Errorf("building the programs: %w: %s", err, shorten(out))
	}
	cmd := r.command(ctx, r.tree.root)
	cmd.Path, cmd.Args, cmd.Err = "/bin/bash", []string{"bash", "hack/test.sh", "e2e", "-failfast"}, nil
	cmd.Env = append(cmd.Env, "PACKAGES=./test/e2e/"+f.E2E, "GOFLAGS="+os.Getenv("GOFLAGS"))
	out, err := measured(cmd, spent)
	if err == nil {
		return "", "", nil
	}
	if _, after, ok := bytes.Cut(out, []byte("--- FAIL: ")); ok {
		name, _, _ := bytes.Cut(after, []byte(" "))
		return levelE2E, string(name) + " of test/e2e/" + f.E2E, nil
	}
	return "", "", fmt.Errorf("hack/test.sh: %w: %s", err, shorten(out))
}

// measured runs a command and adds what it costs.
func measured(cmd *exec.Cmd, spent *cost) ([]byte, error) {
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if state := cmd.ProcessState; state != nil {
		spent.add(cost{time.Since(began), state.UserTime() + state.SystemTime()})
	}
	return out, err
}

func patterns(folders []string) (patterns []string) {
	for _, folder := range folders {
		patterns = append(patterns, "./"+folder)
	}
	return patterns
}

// shorten returns the end of an output.
func shorten(out []byte) string {
	const most = 1500
	return strings.TrimSpace(string(out[max(0, len(out)-most):]))
}
