// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
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
	from := t.TempDir()
	name := filepath.Join(from, "some-name")
	more := map[string]string{"DIGESTS": "hub-agent:" + version + "@sha256:0\n", "site/index.html": "<p>" + version + "</p>", "manifests/x.yaml": "image: clusterhub/hub-agent:" + version + "\n"}
	for _, chart := range []string{"clusterhub", "hub-agent"} {
		var b bytes.Buffer
		if err := tarball(&b, time.Unix(1700000000, 0), []file{{chart + "/Chart.yaml", 0o644, []byte("name: " + chart + "\nversion: " + version[1:] + "\nappVersion: " + version + "\n")}}); err != nil {
			t.Fatal(err)
		}
		more[chart+"-"+version[1:]+".tgz"] = b.String()
	}
	args := []string{"--add=" + filepath.Join(from, "DIGESTS"), "--manifests=" + filepath.Join(from, "manifests"), "--site=" + filepath.Join(from, "site")}
	for path, text := range more {
		if strings.HasSuffix(path, ".tgz") {
			args = append(args, "--add="+filepath.Join(from, path))
		}
		path = filepath.Join(from, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(name, program, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	at := url.URL{Scheme: "file", Path: dir}
	// The program in images has the name of its file.
	inImage := filepath.Join(from, "hub-agent")
	if err := os.WriteFile(inImage, program, 0o700); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--bill=linux/"+runtime.GOARCH+"="+inImage)
	err = run(append(args, "--version="+version, "--url="+at.String(), "--license=../../LICENSE", "--changes=testdata/changes", "--output="+dir,
		runtime.GOOS+"/"+runtime.GOARCH+"="+name, "windows/amd64="+name))
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

// TestRelease_IsReproducible: but for where it is fetched from, which is another folder here.
func TestRelease_IsReproducible(t *testing.T) {
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

// TestRelease_Installs does what krew and those do who install the rest, and does not take a release in which something is wrong. Sums are made
// anew after each change, so that it is seen by itself.
func TestRelease_Installs(t *testing.T) {
	good := released(t)
	if err := check(good); err != nil {
		t.Fatal(err)
	}
	all := contents(t, good)
	archive := program + "_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH
	edit := func(name, old, by string) func(map[string]string) {
		return func(files map[string]string) {
			if !strings.Contains(files[name], old) {
				t.Errorf("%s has no %q", name, old)
			}
			files[name] = strings.ReplaceAll(files[name], old, by)
		}
	}
	packed := func(f file) string {
		var b bytes.Buffer
		if err := tarball(&b, time.Unix(0, 0), []file{f}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	manifests := "clusterhub-manifests_" + version + ".tar.gz"
	for want, change := range map[string]func(map[string]string){
		"has no sum of more":                             func(files map[string]string) { files["more"] = "" },
		"of NOTES.md, which has another":                 func(files map[string]string) { files["NOTES.md"] += "x" },
		"of DIGESTS, which has another or is not there":  func(files map[string]string) { delete(files, "DIGESTS") },
		"krew's manifest says":                           edit("hub.yaml", sumOf([]byte(all[archive+".tar.gz"])), sumOf(nil)),
		"krew would not take the manifest":               edit("hub.yaml", "kind: Plugin", "kind: Plug"),
		"no bill of materials of kubectl-hub " + version: edit(archive+".spdx.json", version, "v1.0.0"),
		"hub-agent_" + version + "_linux_" + runtime.GOARCH + ".spdx.json is not there": func(files map[string]string) {
			delete(files, "hub-agent_"+version+"_linux_"+runtime.GOARCH+".spdx.json")
		},
		"expected LICENSE and kubectl": edit("hub.yaml", "bin: kubectl-hub\n", "bin: kubectl-bub\n"),
		"expected the version v1.2.3-rc.2": func(files map[string]string) {
			for name, text := range all {
				delete(files, name)
				files[strings.ReplaceAll(name, "rc.1", "rc.2")] = strings.ReplaceAll(text, "rc.1", "rc.2")
			}
			// The archives are as they were, and so is the program in them.
			for _, old := range []string{archive + ".tar.gz", program + "_" + version + "_windows_amd64.zip"} {
				files[strings.ReplaceAll(old, "rc.1", "rc.2")] = all[old]
			}
		},
		"which is not among those of " + version: edit("DIGESTS", "hub-agent:", "hub-agents:"),
		"names no image": func(files map[string]string) {
			files[manifests] = packed(file{"deploy/x.yaml", 0o644, []byte("kind: X\n")})
		},
		"is the chart": func(files map[string]string) {
			files["clusterhub-0.9.0.tgz"] = packed(file{"clusterhub-0.9.0.tgz/Chart.yaml", 0o644, []byte("name: clusterhub\nversion: 0.9.0\n")})
		},
		"there is no chart hub-agent of": func(files map[string]string) { delete(files, "hub-agent-"+version[1:]+".tgz") },
		"has no index.html of":           func(files map[string]string) { files["clusterhub-docs_"+version+".tar.gz"] = files[manifests] },
		"NOTES.md does not begin with":   edit("NOTES.md", "# "+version, "# v1.0.0"),
	} {
		t.Run(want, func(t *testing.T) {
			files := maps.Clone(all)
			change(files)
			o := options{output: t.TempDir()}
			summed := strings.Contains(want, "sum of") || strings.Contains(want, "which has another")
			for name, text := range files {
				if name != sums || summed {
					if err := o.write(name, []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !summed {
				if err := o.sum(); err != nil {
					t.Fatal(err)
				}
			}
			if err := check(o.output); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, expected one with %q", err, want)
			}
		})
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
	manifests := untar(t, []byte(all["clusterhub-manifests_"+version+".tar.gz"]))
	if text := string(manifests["deploy/x.yaml"].content); !strings.Contains(text, "hub-agent") {
		t.Errorf("the archive of manifests has %d files, and not what is in the folder", len(manifests))
	}
	bills := 0
	for name, data := range all {
		if !strings.HasSuffix(name, ".spdx.json") {
			continue
		}
		bills++
		bill, err := spdxjson.Read(strings.NewReader(data))
		if err != nil || !strings.HasPrefix(name, bill.Packages[0].PackageName+"_") || bill.Packages[0].PackageVersion != version {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bills != 3 {
		t.Errorf("there are %d bills of materials: expected those of the plugin on 2 platforms, and of the program in an image", bills)
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
	several := notes(version, []change{{Kind: "fix", Area: "ui", text: "One."}, {Kind: "fix", Area: "Agents", text: "Two."}, {Kind: "fix", Area: "ui", text: "Three."}})
	if want := "- **Agents**: Two.\n- **ui**: One.\n- **ui**: Three.\n"; !strings.HasSuffix(several, want) {
		t.Errorf("the notes are\n%s\nexpected at their end\n%s", several, want)
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

func TestParse_Errors(t *testing.T) {
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

func TestRun_RejectsInvalidRelease(t *testing.T) {
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
