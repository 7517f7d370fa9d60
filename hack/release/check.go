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
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	spdxjson "github.com/spdx/tools-golang/json"
	"sigs.k8s.io/yaml"
)

// made is a release, by the names of its files.
type made struct {
	version string
	files   map[string][]byte
}

// check does with a release what those do who install it: all sums, the plugin by krew's manifest, bills of materials, manifests, charts. What is for this
// platform is run. It says what it has not found as well.
func check(dir string) error {
	m := made{files: map[string][]byte{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		m.files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
	}
	p := plugin{}
	if err := yaml.UnmarshalStrict(m.files[pluginName+".yaml"], &p); err != nil {
		return fmt.Errorf("%s.yaml: %w", pluginName, err)
	}
	m.version = p.Spec.Version
	ran, err := m.install(p)
	if err = errors.Join(m.sums(), err, m.manifests(), m.charts(), m.bills(p), m.texts()); err != nil {
		return err
	}
	fmt.Printf("  checked %s: %d files have their sums, and the plugin for %s\n", m.version, len(m.files)-1, ran)
	return nil
}

// sums are one of each file, and of nothing else.
func (m made) sums() (err error) {
	summed := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(m.files[sums])), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		if data, ok := m.files[name]; !ok || sumOf(data) != sum {
			err = errors.Join(err, fmt.Errorf("%s has the sum %s of %s, which has another or is not there", sums, sum, name))
		}
		summed[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		if !summed[name] && name != sums {
			err = errors.Join(err, fmt.Errorf("%s has no sum of %s", sums, name))
		}
	}
	return err
}

// install looks at the archives of all platforms, and runs that of this one.
func (m made) install(p plugin) (ran string, err error) {
	if p.APIVersion != krewVersion || p.Kind != "Plugin" || p.Metadata.Name != pluginName || len(p.Spec.Platforms) == 0 || p.Spec.ShortDescription == "" ||
		strings.HasSuffix(p.Spec.ShortDescription, ".") {
		return "", fmt.Errorf("krew would not take the manifest %+v", p)
	}
	ran = "this platform is none of them"
	for _, of := range p.Spec.Platforms {
		name, where := path.Base(of.URI), of.Selector.MatchLabels["os"]+"/"+of.Selector.MatchLabels["arch"]
		files, unpacking := unpacked(name, m.files[name])
		switch {
		case unpacking != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", name, unpacking))
		case sumOf(m.files[name]) != of.SHA256:
			err = errors.Join(err, fmt.Errorf("%s has the sum %s, and krew's manifest says %s", name, sumOf(m.files[name]), of.SHA256))
		case len(files) != 2 || len(files["LICENSE"].content) == 0 || files["LICENSE"].mode != 0o644 || files[of.Bin].mode != 0o755:
			err = errors.Join(err, fmt.Errorf("%s has %d files, expected LICENSE and %s, which can be run", name, len(files), of.Bin))
		case where == runtime.GOOS+"/"+runtime.GOARCH:
			ran = where + " says its version"
			err = errors.Join(err, m.run(files[of.Bin]))
		}
		err = errors.Join(err, m.bill(program, where))
	}
	return ran, err
}

// bill is that of a program for a platform.
func (m made) bill(name, of string) error {
	file := name + "_" + m.version + "_" + strings.ReplaceAll(of, "/", "_") + ".spdx.json"
	bill, err := spdxjson.Read(bytes.NewReader(m.files[file]))
	if err != nil || len(bill.Packages) == 0 || bill.Packages[0].PackageName != name || bill.Packages[0].PackageVersion != m.version {
		return errors.Join(fmt.Errorf("%s is not there, or no bill of materials of %s %s", file, name, m.version), err)
	}
	return nil
}

// bills are those of the programs in images, which are for the same platforms as the plugin for Linux.
func (m made) bills(p plugin) (err error) {
	for _, line := range strings.Fields(string(m.files["DIGESTS"])) {
		name, _, _ := strings.Cut(line, ":")
		for _, of := range p.Spec.Platforms {
			if of.Selector.MatchLabels["os"] == "linux" {
				err = errors.Join(err, m.bill(name, "linux/"+of.Selector.MatchLabels["arch"]))
			}
		}
	}
	return err
}

// run has the plugin say its version.
func (m made) run(f file) error {
	dir, err := os.MkdirTemp("", "clusterhub-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	installed := filepath.Join(dir, f.name)
	if err := os.WriteFile(installed, f.content, 0o755); err != nil {
		return err
	}
	out, err := exec.Command(installed, "--version").CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), " "+m.version) {
		return errors.Join(fmt.Errorf("%s --version says %q, expected the version %s at its end", f.name, out, m.version), err)
	}
	return nil
}

var ourImage = regexp.MustCompile(`clusterhub/([a-z-]+):(v[^\s"']+)`)

// manifests name images of this version, which are among the digests.
func (m made) manifests() (err error) {
	name := "clusterhub-manifests_" + m.version + ".tar.gz"
	files, err := unpacked(name, m.files[name])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	named := 0
	for _, f := range files {
		for _, image := range ourImage.FindAllSubmatch(f.content, -1) {
			named++
			if string(image[2]) != m.version || !bytes.Contains(m.files["DIGESTS"], []byte(string(image[1])+":"+m.version+"@sha256:")) {
				err = errors.Join(err, fmt.Errorf("%s in %s has the image %s, which is not among those of %s in DIGESTS", f.name, name, image[0], m.version))
			}
		}
	}
	if named == 0 {
		err = fmt.Errorf("%s names no image", name)
	}
	return err
}

// charts are both, of this version, and no others.
func (m made) charts() (err error) {
	missing := map[string]bool{"clusterhub": true, "hub-agent": true}
	for name, data := range m.files {
		if !strings.HasSuffix(name, ".tgz") {
			continue
		}
		files, unpacking := unpacked(name, data)
		of, _, _ := strings.Cut(name, "-"+strings.TrimPrefix(m.version, "v"))
		chart := struct{ Name, Version, AppVersion string }{}
		unpacking = errors.Join(unpacking, yaml.Unmarshal(files[of+"/Chart.yaml"].content, &chart))
		if unpacking != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, unpacking))
		} else if chart.Name != of || "v"+chart.Version != m.version || chart.AppVersion != m.version {
			err = errors.Join(err, fmt.Errorf("%s is the chart %+v, expected one of %s", name, chart, m.version))
		}
		delete(missing, of)
	}
	for _, of := range slices.Sorted(maps.Keys(missing)) {
		err = errors.Join(err, fmt.Errorf("there is no chart %s of %s", of, m.version))
	}
	return err
}

// texts are the notes and the documentation, of this version.
func (m made) texts() (err error) {
	if !bytes.HasPrefix(m.files["NOTES.md"], []byte("# "+m.version+"\n")) {
		err = fmt.Errorf("NOTES.md does not begin with # %s", m.version)
	}
	name := "clusterhub-docs_" + m.version + ".tar.gz"
	files, unpacking := unpacked(name, m.files[name])
	if !bytes.Contains(files["clusterhub-docs/index.html"].content, []byte(m.version)) {
		err = errors.Join(err, fmt.Errorf("%s has no index.html of %s", name, m.version), unpacking)
	}
	return err
}

// unpacked are the files of an archive, by their names.
func unpacked(name string, data []byte) (map[string]file, error) {
	files := map[string]file{}
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, err
		}
		for _, f := range archive.File {
			in, err := f.Open()
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(in)
			if err != nil {
				return nil, err
			}
			files[f.Name] = file{f.Name, int64(f.Mode()), content}
		}
		return files, nil
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(compressed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files[h.Name] = file{h.Name, h.Mode, content}
	}
}
