// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Release makes what a release has besides images, of programs that were built before: `make release` uses it. The same commit gives the same
// files.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/clusterhub/clusterhub/hack/release/image/sbom"
)

// The plugin of kubectl, as krew and as its users know it.
const (
	pluginName = "hub"
	program    = "kubectl-hub"
	sums       = "SHA256SUMS"
)

const usage = `usage:
  release --version=VERSION --url=URL --license=FILE --changes=DIR --output=DIR [--manifests=DIR] [--site=DIR] [--add=FILE]… [--bill=OS/ARCH=PROGRAM]… OS/ARCH=PROGRAM…
      writes an archive of kubectl-hub for each platform, bills of materials, the manifest for krew, notes and checksums to DIR.
      --bill is for a program that is in an image, and not in an archive.
      SOURCE_DATE_EPOCH has to be set to the time of the commit, in seconds.
  release check DIR
      does with the release in DIR what those do who install it.
  release compare ROOT
      compares the Go packages that others build with to those of the last tag of a release.`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// options are those of a release.
type options struct {
	version, url, license, changes, manifests, site, output string
	add, bills                                              []string
	created                                                 time.Time
}

func run(args []string) error {
	if len(args) == 2 {
		if do := map[string]func(string) error{"check": check, "compare": compare}[args[0]]; do != nil {
			return do(args[1])
		}
	}
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(os.Stderr, usage) }
	flags.StringVar(&o.version, "version", "", "")
	flags.StringVar(&o.url, "url", "", "")
	flags.StringVar(&o.license, "license", "LICENSE", "")
	flags.StringVar(&o.changes, "changes", "docs/changes", "")
	flags.StringVar(&o.output, "output", "", "")
	flags.StringVar(&o.manifests, "manifests", "", "")
	flags.StringVar(&o.site, "site", "", "")
	flags.Func("add", "", func(file string) error { o.add = append(o.add, file); return nil })
	flags.Func("bill", "", func(of string) error { o.bills = append(o.bills, of); return nil })
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case o.output == "" || o.url == "" || flags.NArg() == 0:
		return errors.New("it needs --output, --url and OS/ARCH=PROGRAM\n" + usage)
	case !semver.IsValid(o.version) || semver.Canonical(o.version) != o.version || strings.Contains(o.version, "dirty"):
		return fmt.Errorf("--version=%s is not that of a release, such as v1.2.3 or v1.2.3-rc.1: tag the commit, or say VERSION=", o.version)
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH has to be the time of the commit in seconds (git log -1 --format=%%ct): %w", err)
	}
	o.created = time.Unix(epoch, 0).UTC()
	return o.make(flags.Args())
}

func (o options) make(programs []string) error {
	license, err := os.ReadFile(o.license)
	if err != nil {
		return err
	}
	all, err := changes(o.changes)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(o.output), os.MkdirAll(o.output, 0o755)); err != nil {
		return err
	}
	var platforms []platform
	for _, arg := range programs {
		p, err := o.platform(arg, license)
		if err != nil {
			return err
		}
		platforms = append(platforms, *p)
	}
	krew, err := manifest(o.version, platforms)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{pluginName + ".yaml": krew, "NOTES.md": []byte(notes(o.version, all))} {
		if err := o.write(name, data); err != nil {
			return err
		}
	}
	if err := errors.Join(o.pack("clusterhub-manifests", "deploy", o.manifests), o.pack("clusterhub-docs", "clusterhub-docs", o.site)); err != nil {
		return err
	}
	for _, arg := range o.bills {
		of, path, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("--bill=%s is not OS/ARCH=PROGRAM", arg)
		}
		if err := o.bill(filepath.Base(path), of, path); err != nil {
			return err
		}
	}
	for _, file := range o.add {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := o.write(filepath.Base(file), data); err != nil {
			return err
		}
	}
	return o.sum()
}

// platform makes the archive and the bill of one platform.
func (o options) platform(arg string, license []byte) (*platform, error) {
	of, path, ok := strings.Cut(arg, "=")
	system, arch, both := strings.Cut(of, "/")
	if !ok || !both {
		return nil, fmt.Errorf("%q is not OS/ARCH=PROGRAM, such as linux/amd64=_output/kubectl-hub", arg)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("%s_%s_%s_%s", program, o.version, system, arch)
	bin, ending, pack := program, ".tar.gz", tarball
	if system == "windows" {
		bin, ending, pack = program+".exe", ".zip", zipped
	}
	var archive bytes.Buffer
	if err := pack(&archive, o.created, []file{{"LICENSE", 0o644, license}, {bin, 0o755, content}}); err != nil {
		return nil, err
	}
	if err := errors.Join(o.write(base+ending, archive.Bytes()), o.bill(program, of, path)); err != nil {
		return nil, err
	}
	return &platform{
		Selector: selector{MatchLabels: map[string]string{"os": system, "arch": arch}},
		URI:      strings.TrimSuffix(o.url, "/") + "/" + base + ending, SHA256: sumOf(archive.Bytes()), Bin: bin,
	}, nil
}

// bill writes the bill of materials of a program.
func (o options) bill(name, of, path string) error {
	bill, err := sbom.Of(sbom.Program{Name: name, Platform: of, Version: o.version, File: path, Created: o.created})
	if err != nil {
		return fmt.Errorf("the bill of materials of %s: %w", path, err)
	}
	return o.write(name+"_"+o.version+"_"+strings.ReplaceAll(of, "/", "_")+".spdx.json", bill)
}

// pack makes an archive of a folder, with all of it below a folder of another name.
func (o options) pack(name, as, folder string) error {
	if folder == "" {
		return nil
	}
	var files []file
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, path)
		files = append(files, file{as + "/" + filepath.ToSlash(below), 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := tarball(&archive, o.created, files); err != nil {
		return err
	}
	return o.write(name+"_"+o.version+".tar.gz", archive.Bytes())
}

// write writes a file, which must not be there: two of one name would be one.
func (o options) write(name string, data []byte) error {
	file, err := os.OpenFile(filepath.Join(o.output, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sum writes the checksums of all files, as sha256sum --check reads them.
func (o options) sum() error {
	entries, err := os.ReadDir(o.output)
	if err != nil {
		return err
	}
	var lines []string
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(o.output, entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, sumOf(data)+"  "+entry.Name()+"\n")
	}
	slices.Sort(lines)
	return o.write(sums, []byte(strings.Join(lines, "")))
}
