// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is one with a release, from whose tree one file is another by now.
func repository(t *testing.T, path, text string) string {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/hub\n\ngo 1.26\n")
	write("pkg/apis/rain/rain.go", "package rain\n\n// Fall falls.\nfunc Fall() {}\n\n// Drop is one.\ntype Drop struct{ Size int }\n\n// Grow grows.\nfunc (*Drop) Grow() {}\n")
	write("pkg/apis/snow/snow.go", "package snow\n\n// Fall falls.\nfunc Fall() {}\n")
	write("pkg/apis/internal/wind/wind.go", "package wind\n\n// Blow blows.\nfunc Blow() {}\n")
	write("pkg/sun/sun.go", "package sun\n\n// Shine shines.\nfunc Shine() {}\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "All"}, {"tag", "v1.2.3"}, {"tag", "v1.3.0-rc.1"}, {"tag", "other"}} {
		inGit(t, root, args...)
	}
	if path != "" {
		write(path, text)
	}
	return root
}

func inGit(t *testing.T, root string, args ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", root, "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// compared is what compare says and prints of a repository.
func compared(t *testing.T, root string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	err = compare(root)
	os.Stdout = stdout
	write.Close()
	said, _ := io.ReadAll(read)
	if err != nil {
		return "refused: " + err.Error()
	}
	return string(said)
}

// TestCompare_DetectsBreakingChanges changes a tree after its release: what is removed has to be in the notes, what is added has not.
func TestCompare_DetectsBreakingChanges(t *testing.T) {
	const rain = "pkg/apis/rain/rain.go"
	const drop = "\n// Drop is one.\ntype Drop struct{ Size int }\n\n// Grow grows.\nfunc (*Drop) Grow() {}\n"
	note := func(kind, text string) string {
		return "---\nkind: " + kind + "\narea: Go\naction: Take another.\n---\n" + text + "\n"
	}
	const gone, method = "package rain\n" + drop, "package rain\n\n// Fall falls.\nfunc Fall() {}\n\n// Drop is one.\ntype Drop struct{ Size int }\n"
	for name, test := range map[string]struct{ text, note, want string }{
		"nothing":                     {"package rain\n\n// Fall falls.\nfunc Fall() {}\n" + drop, "", "compared with v1.2.3: 0 changes add something, and 0"},
		"added":                       {"package rain\n\n// Fall falls.\nfunc Fall() {}\n\n// Rise rises.\nfunc Rise() {}\n" + drop, "", "1 changes add something, and 0"},
		"removed":                     {gone, "", "refused: programs that build with the Go packages of v1.2.3 would not build any more:\npkg/apis/rain: Fall: removed"},
		"what to do about it":         {gone, "", "kind removal, as in `pkg/apis/rain.Fall`"},
		"removed and in the notes":    {gone, note("removal", "There is no `pkg/apis/rain.Fall` any more."), "0 changes add something, and 1 that others cannot build with are in the notes"},
		"in a note of another kind":   {gone, note("change", "There is no `pkg/apis/rain.Fall` any more."), "refused: "},
		"in a note on another":        {gone, note("removal", "There is no `pkg/apis/rain.Fallen` any more."), "refused: "},
		"a method":                    {method, "", "pkg/apis/rain: (*Drop).Grow: removed"},
		"a method of a type in notes": {method, note("removal", "`pkg/apis/rain.Drop` grows no more."), "and 1 that others"},
		"another parameter":           {"package rain\n\n// Fall falls.\nfunc Fall(int) {}\n" + drop, "", "pkg/apis/rain: Fall: changed from func() to func(int)"},
		"what does not compile":       {"package rain\n\nfunc Fall() { x }\n", "", "refused: "},
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t, rain, test.text)
			if test.note != "" {
				if err := os.MkdirAll(filepath.Join(root, "docs", "changes"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, "docs", "changes", "x.md"), []byte(test.note), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := compared(t, root); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

// TestCompare_PublicPackagesOnly removes whole packages, and compares clones that have no release.
func TestCompare_PublicPackagesOnly(t *testing.T) {
	for folder, want := range map[string]string{
		"pkg/apis/snow": "pkg/apis/snow: the package is gone", "pkg/apis/internal": "compared with v1.2.3", "pkg/sun": "compared with v1.2.3",
	} {
		root := repository(t, "", "")
		if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
			t.Fatal(err)
		}
		if got := compared(t, root); !strings.Contains(got, want) {
			t.Errorf("without %s: got %q, want %q in it", folder, got, want)
		}
	}
	root := repository(t, "", "")
	inGit(t, root, "commit", "-qm", "More", "--allow-empty")
	shallow := filepath.Join(t.TempDir(), "shallow")
	inGit(t, root, "clone", "-q", "--depth=1", "file://"+root, shallow)
	if got := compared(t, shallow); !strings.Contains(got, "this clone is shallow") {
		t.Errorf("of a shallow clone: %q", got)
	}
	inGit(t, root, "tag", "-d", "v1.2.3")
	if got := compared(t, root); !strings.Contains(got, "there is no tag of a release") {
		t.Errorf("without a release: %q", got)
	}
}
