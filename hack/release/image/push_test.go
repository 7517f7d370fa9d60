// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	spdxjson "github.com/spdx/tools-golang/json"
)

const goarch = runtime.GOARCH

// TestPush pushes to a registry that lists referrers, and to one that does not, and pulls from there what a user would.
func TestPush(t *testing.T) {
	dir := built(t, "amd64="+programs(t, "amd64", "-trimpath"), "arm64="+programs(t, "arm64", "-trimpath"))
	want, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, lists := range []bool{true, false} {
		server := httptest.NewServer(registry.New(registry.WithReferrersSupport(lists), registry.Logger(log.New(io.Discard, "", 0))))
		defer server.Close()
		prefix := strings.TrimPrefix(server.URL, "http://") + "/some/team"
		if err := run(t.Context(), []string{"push", "--from=" + dir, "--prefix=" + prefix}); err != nil {
			t.Fatal(err)
		}
		for _, i := range want {
			tag, err := name.NewTag(prefix + "/" + i.component + ":" + version)
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(tag)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := i.index.Digest()
			if after, err := index.Digest(); err != nil || after != before {
				t.Errorf("%s is %s, and was %s (%v)", tag, after, before, err)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range manifest.Manifests {
				checkBill(t, tag, d.Digest.String(), i.component, d.Platform.String())
			}
		}
	}
}

// checkBill reads the bill of materials that refers to an image, as a scanner would.
func checkBill(t *testing.T, tag name.Tag, digest, component, platform string) {
	t.Helper()
	referrers, err := remote.Referrers(tag.Digest(digest))
	if err != nil {
		t.Fatal(err)
	}
	found, err := referrers.IndexManifest()
	if err != nil || len(found.Manifests) != 1 {
		t.Fatalf("%s has %d referrers, expected one (%v)", digest, len(found.Manifests), err)
	}
	artifact, err := remote.Image(tag.Digest(found.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil || manifest.ArtifactType != spdxType || manifest.Subject.Digest.String() != digest || len(manifest.Layers) != 1 {
		t.Fatalf("the referrer of %s is %+v (%v)", digest, manifest, err)
	}
	layer, err := artifact.LayerByDigest(manifest.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	bill, err := spdxjson.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if p := bill.Packages[0]; p.PackageName != component || p.PackageVersion != version || p.PackageComment != platform {
		t.Errorf("the bill of %s for %s is about %s %s for %s", component, platform, p.PackageName, p.PackageVersion, p.PackageComment)
	}
	if last := bill.Packages[len(bill.Packages)-1]; last.PackageName != "stdlib" || "go"+last.PackageVersion != runtime.Version() {
		t.Errorf("the bill has %s %s, expected the standard library of %s", last.PackageName, last.PackageVersion, runtime.Version())
	}
}

// TestUnpack writes what a container sees.
func TestUnpack(t *testing.T) {
	from, to := built(t, "amd64="+programs(t, "amd64", "-trimpath")), t.TempDir()
	for range 2 { // over what there is
		if err := run(t.Context(), []string{"unpack", "--from=" + from, "--output=" + to, "--arch=amd64"}); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join(programs(t, "amd64", "-trimpath"), components[0].name))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		file := filepath.Join(to, c.name, entrypoint)
		info, err := os.Lstat(file)
		if err != nil || info.Mode() != 0o555 {
			t.Fatalf("%s: %v, %v", file, info, err)
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the program (%v)", file, err)
		}
	}
	err = run(t.Context(), []string{"unpack", "--from=" + from, "--output=" + to, "--arch=arm64"})
	if err == nil || !strings.Contains(err.Error(), "there is no image for linux/arm64") {
		t.Errorf("images of another architecture are unpacked: %v", err)
	}
}

// TestComponents verifies that the components are those that the manifests and the values of the charts name.
func TestComponents(t *testing.T) {
	named := regexp.MustCompile(`(?m)(?:clusterhub/([a-z-]+):v0\.0\.0|^ *repository: clusterhub/([a-z-]+)$)`)
	var want, have []string
	err := filepath.WalkDir("../../../artifacts", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, match := range named.FindAllStringSubmatch(string(data), -1) {
			want = append(want, match[1]+match[2])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for _, c := range components {
		have = append(have, c.name)
	}
	want = slices.Compact(want)
	if fmt.Sprint(want) != fmt.Sprint(have) {
		t.Errorf("there are images of %q, and artifacts names %q", have, want)
	}
}

// TestRun_MissingArguments is for those who type it.
func TestRun_MissingArguments(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "")
	for want, args := range map[string]string{
		"expected a command":            "",
		`no command "bild"`:             "bild",
		"push needs --prefix":           "push --from=x",
		"unpack needs --output":         "unpack --from=x",
		"SOURCE_DATE_EPOCH has to be":   "build --version=v1 --output=x amd64=x",
		"build needs ARCH=FOLDER":       "build --version=v1 --output=x",
		"Build them with `make images`": "push --from=nowhere --prefix=localhost/x",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, expected one with %q", args, err, want)
		}
	}
}
