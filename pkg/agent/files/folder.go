// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// current is the symbolic link of a mounted Secret to the folder with its files. It is replaced atomically; then the previous folder is removed.
const current = "..data"

// ReadFolder reads the given files of a folder. Missing files are left out, and a missing folder has no files. All files of a mounted Secret are of
// the same version.
func ReadFolder(dir string, names ...string) (map[string][]byte, error) {
	version := versionOf(dir)
	from := dir
	if version != "" {
		from = filepath.Join(dir, version) // the link is resolved once, not for each file
	}
	data := map[string][]byte{}
	for _, name := range names {
		content, err := read(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		data[name] = content
	}
	if versionOf(dir) != version {
		return nil, fmt.Errorf("the folder %s is being replaced", dir)
	}
	return data, nil
}

// versionOf returns the folder of the current files of a mounted Secret, or "".
func versionOf(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, current))
	if err != nil {
		return ""
	}
	return target
}
