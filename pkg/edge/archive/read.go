// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode"
)

// file is a file of an archive that contains manifests.
type file struct {
	name string
	data []byte
}

// Read reads an archive, given as base64 of a tar.gz. Its errors are for the author of the archive: they name the file and the fix, and contain
// nothing of the documents, which may be secret.
func Read(encoded string) (*Archive, error) {
	packed, err := decode(encoded)
	if err != nil {
		return nil, err
	}
	return ReadPacked(packed)
}

// ReadPacked is like Read for a tar.gz that is not encoded.
func ReadPacked(packed []byte) (*Archive, error) {
	if len(packed) > MaxPacked {
		return nil, fmt.Errorf("the archive has %d bytes, and may have %d: remove files that are not manifests, or divide it among several services", len(packed), MaxPacked)
	}
	files, ignored, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	a := &Archive{}
	left := newBudget()
	for i := range files {
		if err := a.add(&files[i], left); err != nil {
			return nil, err
		}
	}
	if err := a.finish(ignored); err != nil {
		return nil, err
	}
	return a, nil
}

func decode(encoded string) ([]byte, error) {
	if len(encoded) > MaxEncoded {
		return nil, fmt.Errorf("the archive has %d bytes of base64, and may have %d: remove files that are not manifests, or divide it among several services", len(encoded), MaxEncoded)
	}
	packed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("the archive is not base64: give a tar.gz in standard base64 with padding")
	}
	return packed, nil
}

var errExpanded = fmt.Errorf("the archive has more than %d bytes when it is decompressed: remove files that are not manifests, or divide it among several services", MaxExpanded)

// bounded is a reader that returns an error, and not io.EOF, once a stream exceeds its limit.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.from.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errExpanded
	}
	return n, err
}

func unpack(packed []byte) (files []file, ignored []string, err error) {
	// With a ByteReader, gzip reads not one byte more than it needs, so that data after it can be detected.
	source := bufio.NewReader(bytes.NewReader(packed))
	unzipped, err := gzip.NewReader(source)
	if err != nil {
		return nil, nil, errors.New("the archive is not gzip: create it with 'tar -czf'")
	}
	unzipped.Multistream(false)
	stream := &bounded{from: unzipped, left: MaxExpanded}
	files, ignored, err = untar(stream)
	if err != nil {
		return nil, nil, err
	}
	// The data after the end of tar is read, too: it is within the limit, and the checksum is compared only at the end.
	padding := make([]byte, 32<<10)
	for {
		n, err := stream.Read(padding)
		if len(bytes.Trim(padding[:n], "\x00")) > 0 {
			return nil, nil, errors.New("the archive has data after the end of its tar: create it again with 'tar -czf'")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, damaged(err)
		}
	}
	if _, err := source.ReadByte(); err != io.EOF {
		return nil, nil, errors.New("the archive has data after the end of its gzip: create it again with 'tar -czf'")
	}
	return files, ignored, nil
}

func damaged(err error) error {
	if errors.Is(err, errExpanded) {
		return err
	}
	return errors.New("the archive is damaged, or not a tar.gz: create it again with 'tar -czf'")
}

func untar(stream io.Reader) (files []file, ignored []string, err error) {
	entries := tar.NewReader(stream)
	seen := map[string]bool{}
	for n := 0; ; n++ {
		header, err := entries.Next()
		if err == io.EOF {
			return files, ignored, nil
		}
		if err != nil {
			return nil, nil, damaged(err)
		}
		if n == MaxEntries {
			return nil, nil, fmt.Errorf("the archive has more than %d entries: remove files that are not manifests", MaxEntries)
		}
		name, err := entry(header)
		if err != nil {
			return nil, nil, err
		}
		if name == "" {
			continue
		}
		if seen[name] {
			return nil, nil, fmt.Errorf("the archive has %s twice: each file needs a unique name", short(name))
		}
		seen[name] = true
		if !manifest(name) {
			ignored = append(ignored, name)
			continue
		}
		if header.Size > MaxExpanded {
			return nil, nil, errExpanded
		}
		// The size in a header is not trusted: no memory is allocated for it before the data is read.
		data, err := io.ReadAll(entries)
		if err != nil {
			return nil, nil, damaged(err)
		}
		files = append(files, file{name, data})
	}
}

// entry returns the path of a regular file, or "" for an entry without content.
func entry(header *tar.Header) (string, error) {
	// git archive writes such an entry, with the commit in it.
	if header.Typeflag == tar.TypeXGlobalHeader {
		return "", nil
	}
	name, err := cleaned(header.Name)
	if err != nil {
		return "", err
	}
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "", fmt.Errorf("%s in the archive is sparse: write it in full", short(name))
		}
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return name, nil
	case tar.TypeDir:
		return "", nil
	case tar.TypeSymlink, tar.TypeLink:
		return "", fmt.Errorf("%s in the archive is a link: replace it with the file", short(name))
	}
	return "", fmt.Errorf("%s in the archive is neither a file nor a folder: remove it", short(name))
}

// cleaned checks and cleans a path of an archive. No file is ever written by it; but an archive that other programs would unpack elsewhere is not one
// of manifests, and the path is shown to users.
func cleaned(name string) (string, error) {
	if len(name) > MaxName {
		return "", fmt.Errorf("the path %s in the archive has %d bytes, and may have %d", short(name), len(name), MaxName)
	}
	if strings.HasPrefix(name, "/") || strings.Contains(name, `\`) {
		return "", fmt.Errorf("the path %s in the archive must be relative, with slashes between its parts", short(name))
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("the path %s in the archive has characters that are not printable", short(name))
	}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if part == ".." {
			return "", fmt.Errorf("the path %s in the archive leads out of it by '..'", short(name))
		}
	}
	name = path.Clean(name)
	if folders := strings.Count(name, "/"); folders > MaxFolders {
		return "", fmt.Errorf("the path %s in the archive is in %d folders, and may be in %d", short(name), folders, MaxFolders)
	}
	return name, nil
}

// manifest reports whether a file is read. The files that tools of macOS add beside each file are not.
func manifest(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") {
		return false
	}
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// short returns a name from an archive in a form that is suitable for a message.
func short(name string) string {
	const most = 80
	if len(name) <= most {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("%q…", name[:most])
}
