// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"testing"
)

// content is a file for an archive.
type content struct{ name, data string }

// pack returns an archive of files.
func pack(t testing.TB, files ...content) string {
	t.Helper()
	return zip(t, tarOf(t, files...))
}

func tarOf(t testing.TB, files ...content) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		header(t, w, tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.data))})
		if _, err := io.WriteString(w, f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func header(t testing.TB, w *tar.Writer, h tar.Header) {
	t.Helper()
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
}

// zip compresses and encodes data.
func zip(t testing.TB, data []byte) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(gzipOf(t, data))
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// block returns the header of an entry as an attacker would write it: Go's writer rejects most of these.
func block(name string, typeflag byte, size int64) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000644\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], "00000000000\x00")
	b[156] = typeflag
	copy(b[257:], "ustar\x0000")
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// padded pads the data that follows a header.
func padded(data string) []byte {
	return append([]byte(data), make([]byte, (512-len(data)%512)%512)...)
}

// record returns a line of a PAX header.
func record(key, value string) string {
	for n := len(key) + len(value) + 3; ; n++ {
		if line := fmt.Sprintf("%d %s=%s\n", n, key, value); len(line) == n {
			return line
		}
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
