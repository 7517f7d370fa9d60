// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entrypoint is where the program is in each image, and user as which user and group it runs.
const (
	entrypoint = "/usr/local/bin/component"
	user       = "65532:65532"
)

// source is where the sources are, as the images say it.
const source = "https://github.com/clusterhub/clusterhub"

// release has the common properties of all images.
type release struct {
	version, revision string
	// created is the time of the commit: that of the build would make each build another one.
	created time.Time
	// license is the text of the license.
	license []byte
}

// labels describe the image of a component, and the index of its images.
func (r release) labels(c component) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": c.name, prefix + "description": c.description, prefix + "version": r.version, prefix + "revision": r.revision,
		prefix + "created": r.created.Format(time.RFC3339), prefix + "source": source, prefix + "licenses": "Apache-2.0",
	}
}

// image returns the image of a program, with only the program and the license. The root certificates are in the program.
func (r release) image(p *program) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return r.files(p), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: r.created}
	img, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &v1.ConfigFile{
		Architecture: p.arch, OS: "linux", Created: created, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: r.labels(p.component)},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "hack/release/image"}})
}

// files are those of an image, as a tar archive. They belong to root, and nothing but reading and running them is allowed.
func (r release) files(p *program) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(r.write(tar.NewWriter(writer), p)) }()
	return reader
}

func (r release) write(to *tar.Writer, p *program) error {
	header := func(kind byte, name string, mode, size int64) error {
		return to.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: r.created, Format: tar.FormatUSTAR})
	}
	if err := header(tar.TypeDir, "licenses/", 0o755, 0); err != nil {
		return err
	}
	if err := header(tar.TypeReg, "licenses/LICENSE", 0o444, int64(len(r.license))); err != nil {
		return err
	}
	if _, err := to.Write(r.license); err != nil {
		return err
	}
	for _, dir := range []string{"usr/", "usr/local/", "usr/local/bin/"} {
		if err := header(tar.TypeDir, dir, 0o755, 0); err != nil {
			return err
		}
	}
	if err := header(tar.TypeReg, entrypoint[1:], 0o555, p.size); err != nil {
		return err
	}
	file, err := os.Open(p.file)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(to, file); err != nil {
		return err
	}
	return to.Close()
}
