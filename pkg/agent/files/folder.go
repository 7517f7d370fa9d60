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

// current is the link of a mounted Secret to the folder with its files. It is replaced in one step, with all of them; then the former
// folder is removed.
const current = "..data"

// ReadFolder reads some files of a folder; those that are not there are left out, and a folder that is not there has none. All of a mounted
// Secret are of one version of it.
func ReadFolder(dir string, names ...string) (map[string][]byte, error) {
	version := versionOf(dir)
	from := dir
	if version != "" {
		from = filepath.Join(dir, version) // the link is followed once, not for each file
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

// versionOf is where the files of a mounted Secret are now, or empty.
func versionOf(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, current))
	if err != nil {
		return ""
	}
	return target
}
