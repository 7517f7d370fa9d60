// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"sigs.k8s.io/yaml"
)

const version = "v1.2.3-rc.1"

// built is a program for this platform, which is quickly built.
var built = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "clusterhub-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-trimpath", "-o", name, "./testdata/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(name)
})

// released is a folder with a release of that program, for this platform and, as if it were for it, for Windows.
func released(t *testing.T) (dir string) {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "release")
	name, chart := filepath.Join(t.TempDir(), "some-name"), filepath.Join(t.TempDir(), "chart.tgz")
	if err := errors.Join(os.WriteFile(name, program, 0o700), os.WriteFile(chart, []byte("a chart"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	at := url.URL{Scheme: "file", Path: dir}
	err = run([]string{"--version=" + version, "--url=" + at.String(), "--license=../../LICENSE", "--changes=testdata/changes", "--output=" + dir, "--manifests=testdata",
		"--add=" + chart, runtime.GOOS + "/" + runtime.GOARCH + "=" + name, "windows/amd64=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(data)
	}
	return all
}

// TestRelease_TwiceIsTheSame: but for where it is fetched from, which is another folder here.
func TestRelease_TwiceIsTheSame(t *testing.T) {
	first, second := contents(t, released(t)), contents(t, released(t))
	if !slices.Equal(slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second))) {
		t.Errorf("%v and %v", slices.Sorted(maps.Keys(first)), slices.Sorted(maps.Keys(second)))
	}
	for name, data := range first {
		if name != "hub.yaml" && name != sums && data != second[name] {
			t.Errorf("%s is another one", name)
		}
	}
}

// TestRelease_IsInstalled does what krew does with the manifest, and runs the plugin.
func TestRelease_IsInstalled(t *testing.T) {
	dir := released(t)
	data, err := os.ReadFile(filepath.Join(dir, "hub.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "hub" || p.Spec.Version != version ||
		p.Spec.ShortDescription == "" || strings.HasSuffix(p.Spec.ShortDescription, ".") || len(p.Spec.Platforms) != 2 {
		t.Fatalf("the manifest is %+v", p)
	}
	for _, of := range p.Spec.Platforms {
		at, err := url.Parse(of.URI)
		if err != nil || at.Scheme != "file" {
			t.Fatalf("%s: %v", of.URI, err)
		}
		archive, err := os.ReadFile(at.Path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sumOf(archive); sum != of.SHA256 {
			t.Errorf("%s has the sum %s, and the manifest says %s", of.URI, sum, of.SHA256)
		}
		files := map[string]file{}
		if strings.HasSuffix(of.URI, ".zip") {
			files = unzip(t, archive)
		} else {
			files = untar(t, archive)
		}
		if len(files) != 2 || !strings.Contains(string(files["LICENSE"].content), "Apache License") || files["LICENSE"].mode != 0o644 ||
			files[of.Bin].mode != 0o755 {
			t.Errorf("%s has %d files, expected LICENSE and %s", of.URI, len(files), of.Bin)
		}
		if of.Selector.MatchLabels["os"] != runtime.GOOS {
			if of.Bin != "kubectl-hub.exe" {
				t.Errorf("on Windows the plugin is %s", of.Bin)
			}
			continue
		}
		installed := filepath.Join(t.TempDir(), "kubectl-hub")
		if err := os.WriteFile(installed, files[of.Bin].content, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), installed).CombinedOutput(); err != nil || string(out) != "it runs\n" {
			t.Errorf("the plugin says %q (%v)", out, err)
		}
	}
}

func untar(t *testing.T, data []byte) map[string]file {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil || h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%+v (%v)", h, err)
		}
		files[h.Name] = file{h.Name, h.Mode, content}
	}
}

func unzip(t *testing.T, data []byte) map[string]file {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil || !f.Modified.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%s of %s (%v)", f.Name, f.Modified, err)
		}
		files[f.Name] = file{f.Name, int64(f.Mode()), content}
	}
	return files
}

// TestRelease_Checksums are right, and there is one of each file.
func TestRelease_Checksums(t *testing.T) {
	all := contents(t, released(t))
	lines := strings.Split(strings.TrimSpace(all[sums]), "\n")
	delete(all, sums)
	if len(lines) != len(all) {
		t.Errorf("there are %d checksums of %d files", len(lines), len(all))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if data, ok := all[name]; !ok || sumOf([]byte(data)) != sum {
			t.Errorf("the sum of %s is wrong, or it is not there", name)
		}
	}
	if all["chart.tgz"] != "a chart" {
		t.Error("what was added is not there")
	}
	manifests := untar(t, []byte(all["clusterhub-manifests_"+version+".tar.gz"]))
	if want, err := os.ReadFile("testdata/changes/ui.md"); err != nil || !bytes.Equal(manifests["deploy/changes/ui.md"].content, want) {
		t.Errorf("the archive of manifests has %d files, and not what is in the folder (%v)", len(manifests), err)
	}
	bills := 0
	for name, data := range all {
		if !strings.HasSuffix(name, ".spdx.json") {
			continue
		}
		bills++
		bill, err := spdxjson.Read(strings.NewReader(data))
		if err != nil || bill.Packages[0].PackageName != program || bill.Packages[0].PackageVersion != version {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bills != 2 {
		t.Errorf("there are %d bills of materials for 2 platforms", bills)
	}
}

// TestNotes are in order: what has to be done, then by kind.
func TestNotes(t *testing.T) {
	const want = "# " + version + `

## Before you upgrade

- **images**: Images have no shell. Use ` + "`kubectl debug`" + `.

## Security

- **logs**: Tokens are in no log.

## Changed

- **images**: Images are made without a base image.

## New

- **kubectl hub**: ` + "`kubectl hub ui`" + ` opens a page.
`
	if got := contents(t, released(t))["NOTES.md"]; got != want {
		t.Errorf("the notes are\n%s\nexpected\n%s", got, want)
	}
	if got := notes(version, nil); !strings.Contains(got, "No change that users notice.") {
		t.Errorf("without changes, the notes are\n%s", got)
	}
}

// TestChanges_OfThisTree: each fragment can be read.
func TestChanges_OfThisTree(t *testing.T) {
	if _, err := changes("../../docs/changes"); err != nil {
		t.Error(err)
	}
}

func TestParse_SaysWhatIsWrong(t *testing.T) {
	for want, data := range map[string]string{
		"has to begin with kind": "kind: fix\narea: x\n",
		"the kind is \"bug\"":    "---\nkind: bug\narea: x\n---\ntext",
		"it has no area":         "---\nkind: fix\n---\ntext",
		"it has no text":         "---\nkind: fix\narea: x\n---\n  \n",
		"needs an action":        "---\nkind: removal\narea: x\n---\ntext",
		"unknown field":          "---\nkind: fix\narea: x\nauthor: x\n---\ntext",
	} {
		if _, err := parse(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, expected one with %q", data, err, want)
		}
	}
}

func TestRun_RefusesWhatIsNoRelease(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for want, args := range map[string][]string{
		"it needs --output":             {"--version=v1.2.3"},
		"is not that of a release":      {"--version=1.2.3", "--output=x", "--url=y", "linux/amd64=x"},
		"--version=abcdef0 is not":      {"--version=abcdef0", "--output=x", "--url=y", "linux/amd64=x"},
		"--version=v1.2.3-dirty is not": {"--version=v1.2.3-dirty", "--output=x", "--url=y", "linux/amd64=x"},
		"SOURCE_DATE_EPOCH has to be":   {"--version=v1.2.3", "--output=x", "--url=y", "linux/amd64=x"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, expected one with %q", args, err, want)
		}
	}
}
