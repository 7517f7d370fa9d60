// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	version = "v1.2.3"
	epoch   = "1700000000"
)

var compiled sync.Map

// programs is a folder with a program for each component, all of them the one in testdata, which is quickly built.
func programs(t *testing.T, arch string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	once, _ := compiled.LoadOrStore(fmt.Sprint(arch, flags), sync.OnceValues(func() ([]byte, error) {
		file := filepath.Join(dir, "program")
		cmd := exec.Command("go", append(append([]string{"build", "-o", file}, flags...), "./testdata/program")...)
		// The flags of the environment, such as those of hack/test.sh, are not for these programs.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=-trimpath=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		return os.ReadFile(file)
	}))
	program, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		if err := os.WriteFile(filepath.Join(dir, c.name), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// built is a folder with the layouts of all components.
func built(t *testing.T, folders ...string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	args := []string{"build", "--version=" + version, "--revision=abc", "--license=../../../LICENSE", "--output=" + dir}
	if err := run(t.Context(), append(args, folders...)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func digests(t *testing.T, dir string) (all []string) {
	t.Helper()
	found, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range found {
		digest, err := i.index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i.component+"@"+digest.String())
		for _, bill := range i.bills {
			digest, err = bill.Digest()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, digest.String())
		}
	}
	return all
}

// TestBuild_IsReproducible: with programs that have other times and modes, and in another time zone.
func TestBuild_IsReproducible(t *testing.T) {
	amd64, arm64 := programs(t, "amd64", "-trimpath"), programs(t, "arm64", "-trimpath")
	first := digests(t, built(t, "amd64="+amd64, "arm64="+arm64))
	for _, c := range components {
		file := filepath.Join(amd64, c.name)
		if err := errors.Join(os.Chmod(file, 0o4711), os.Chtimes(file, time.Time{}, time.Unix(1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	local := time.Local
	time.Local = time.FixedZone("elsewhere", 3600)
	defer func() { time.Local = local }()
	if second := digests(t, built(t, "amd64="+amd64, "arm64="+arm64)); !slices.Equal(first, second) {
		t.Errorf("the same programs have the images\n%s\nand then\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
	if both := digests(t, built(t, "amd64="+amd64)); slices.Equal(first, both) {
		t.Error("images of one architecture have the digests of images of two")
	}
}

// TestBuild_ImageContents checks the files and the configuration of an image.
func TestBuild_ImageContents(t *testing.T) {
	dir := built(t, "amd64="+programs(t, "amd64", "-trimpath"), "arm64="+programs(t, "arm64", "-trimpath"))
	for _, c := range components {
		index, err := layout.ImageIndexFromPath(filepath.Join(dir, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	all, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		for _, arch := range []string{"amd64", "arm64"} {
			img, err := imageFor(i.index, arch)
			if err != nil {
				t.Fatal(err)
			}
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			created := time.Unix(1700000000, 0)
			switch c := config.Config; {
			case config.Architecture != arch || config.OS != "linux" || !config.Created.Equal(created):
				t.Errorf("%s is for %s/%s, of %s", i.component, config.OS, config.Architecture, config.Created)
			case c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/component"}) || len(c.Cmd) > 0 || len(c.Env) > 0:
				t.Errorf("%s runs %q %q as %q with %q", i.component, c.Entrypoint, c.Cmd, c.User, c.Env)
			case c.Labels["org.opencontainers.image.title"] != i.component || c.Labels["org.opencontainers.image.version"] != version ||
				c.Labels["org.opencontainers.image.revision"] != "abc" || c.Labels["org.opencontainers.image.created"] != "2023-11-14T22:13:20Z" ||
				c.Labels["org.opencontainers.image.licenses"] != "Apache-2.0":
				t.Errorf("%s has the labels %q", i.component, c.Labels)
			}
			checkFiles(t, img, created)
		}
		if manifest, err := i.index.IndexManifest(); err != nil || manifest.Annotations["org.opencontainers.image.title"] != i.component {
			t.Errorf("the index of %s has the annotations %q (%v)", i.component, manifest.Annotations, err)
		}
	}
}

// checkFiles fails unless all belongs to root, is of the time of the commit, and can only be read and run.
func checkFiles(t *testing.T, img v1.Image, created time.Time) {
	t.Helper()
	files := mutate.Extract(img)
	defer files.Close()
	found := map[string]int64{}
	for archive := tar.NewReader(files); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.Trim(h.Name, "/")] = h.Mode
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(created) || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
	want := map[string]int64{"licenses": 0o755, "licenses/LICENSE": 0o444, "usr": 0o755, "usr/local": 0o755, "usr/local/bin": 0o755, "usr/local/bin/component": 0o555}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("the image has %v, expected %v", found, want)
	}
}

// TestBuild_RejectsPrograms that would not run in an image, are not the same everywhere, or are too big.
func TestBuild_RejectsPrograms(t *testing.T) {
	good := programs(t, "amd64", "-trimpath")
	c := components[0]
	if _, err := programIn(good, "amd64", c); err != nil {
		t.Fatal(err)
	}
	small := c
	small.budget = 0
	dynamic := t.TempDir()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dynamic, c.name), shell, 0o755); err != nil {
		t.Fatal(err)
	}
	for want, test := range map[string]struct {
		dir, arch string
		component component
	}{
		"has to be for linux/arm64":  {good, "arm64", c},
		"has to be for linux/sparc":  {good, "sparc", c},
		"0 MB of its budget":         {good, "amd64", small},
		"build it with -trimpath":    {programs(t, "amd64"), "amd64", c},
		"needs a linker":             {dynamic, map[string]string{"amd64": "amd64", "arm64": "arm64"}[goarch], c},
		"no such file or directory":  {t.TempDir(), "amd64", c},
		"for linux/amd64: open nowh": {"nowhere", "amd64", c},
	} {
		if _, err := programIn(test.dir, test.arch, test.component); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, expected one with %q", err, want)
		}
	}
}

// TestUnpack_StaysInFolder tries archives that reach for more.
func TestUnpack_StaysInFolder(t *testing.T) {
	dir := t.TempDir()
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "../outside", Mode: 0o644},
		{Typeflag: tar.TypeDir, Name: "../outside", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc"},
		{Typeflag: tar.TypeLink, Name: "link", Linkname: "/etc/passwd"},
		{Typeflag: tar.TypeChar, Name: "device", Mode: 0o666},
	} {
		reader, writer := io.Pipe()
		go func() {
			to := tar.NewWriter(writer)
			writer.CloseWithError(errors.Join(to.WriteHeader(&h), to.Close()))
		}()
		in := filepath.Join(dir, "in")
		if err := errors.Join(os.RemoveAll(in), os.Mkdir(in, 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := extract(reader, in); err == nil {
			t.Errorf("%q of the kind %q is unpacked", h.Name, h.Typeflag)
		}
		_ = reader.Close()
		if _, err := os.Lstat(filepath.Join(dir, "outside")); err == nil {
			t.Fatalf("%q is unpacked outside of its folder", h.Name)
		}
	}
}
