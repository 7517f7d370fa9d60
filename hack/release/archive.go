// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// file is one in an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// tarball writes a tar.gz that depends on the files and the time alone.
func tarball(to io.Writer, created time.Time, files []file) error {
	compressed := gzip.NewWriter(to) // without a name or a time
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: created, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// zipped writes a zip that depends on the files and the time alone.
func zipped(to io.Writer, created time.Time, files []file) error {
	archive := zip.NewWriter(to)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: created}
		h.SetMode(os.FileMode(f.mode))
		in, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := io.Copy(in, bytes.NewReader(f.content)); err != nil {
			return err
		}
	}
	return archive.Close()
}
