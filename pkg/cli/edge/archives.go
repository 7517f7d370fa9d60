// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/edge/archive"
)

// readArchive reads a file that a service definition names. Another user may have written the definition, and the file is sent to the hub. So outside
// of the folder of the definition, it only reads files below the folder that the user allows.
func readArchive(of, name, allowed string) ([]byte, error) {
	if of == standardInput {
		return nil, errors.New("the definition is read from standard input, so it has no folder: pass it as a file")
	}
	root, path, shown := filepath.Dir(of), filepath.Clean(name), "the folder of the definition"
	if !filepath.IsLocal(path) {
		if allowed == "" {
			return nil, fmt.Errorf("it is not in the folder of the definition or below: allow it to be read by --archives=%s", allowing(root, path))
		}
		inAllowed, err := within(allowed, absolute(root, path))
		if err != nil {
			return nil, err
		}
		root, path, shown = allowed, inAllowed, allowed
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := folder.Open(path)
	if err != nil {
		return nil, fmt.Errorf("it must be in %s, or below: %w", shown, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, archive.MaxPacked+1))
	if err == nil && len(data) > archive.MaxPacked {
		err = fmt.Errorf("it is larger than %d bytes, the limit of an archive", archive.MaxPacked)
	}
	return data, err
}

// absolute returns the absolute path of a file that a definition in a folder names.
func absolute(folder, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// allowing returns the folder to allow, in the form that the user types. It takes nothing but ".." from the definition, which another user may have
// written.
func allowing(folder, name string) string {
	if up := filepath.Dir(name); strings.Trim(filepath.ToSlash(up), "./") == "" && !filepath.IsAbs(name) {
		return filepath.Join(folder, up)
	}
	return "FOLDER, with the folder that it is in"
}

// within returns the path of a file relative to the folder that is allowed.
func within(allowed, path string) (string, error) {
	from, err := filepath.Abs(allowed)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("it is neither in the folder of the definition nor in that of --archives (%s), nor below: set --archives to its folder", allowed)
	}
	return relative, nil
}
