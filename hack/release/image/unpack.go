// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack writes the files of the images for an architecture to DIR/COMPONENT: what is the root directory of a container. They belong to the
// user who unpacks them.
func unpack(from, arch, dir string) error {
	all, err := read(from)
	if err != nil {
		return err
	}
	for _, i := range all {
		img, err := imageFor(i.index, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", i.component, err)
		}
		to := filepath.Join(dir, i.component)
		if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
			return err
		}
		files := mutate.Extract(img)
		if err := errors.Join(extract(files, to), files.Close()); err != nil {
			return fmt.Errorf("unpacking %s: %w", i.component, err)
		}
	}
	return nil
}

func imageFor(index v1.ImageIndex, arch string) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var have []string
	for _, d := range manifest.Manifests {
		if d.Platform == nil {
			continue
		}
		if d.Platform.OS == "linux" && d.Platform.Architecture == arch {
			return index.Image(d.Digest)
		}
		have = append(have, d.Platform.String())
	}
	return nil, fmt.Errorf("there is no image for linux/%s, only for %q", arch, have)
}

// extract writes a tar archive to a folder, and nothing outside of it.
func extract(from io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, h.FileInfo().Mode().Perm())
		case tar.TypeReg:
			err = extractFile(root, name, h.FileInfo().Mode().Perm(), archive)
		default:
			err = fmt.Errorf("it is of the kind %q, and our images have files and folders only", h.Typeflag)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func extractFile(root *os.Root, name string, mode os.FileMode, from io.Reader) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Chmod(mode), file.Close())
}
