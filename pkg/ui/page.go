// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// file is a file of the page.
type file struct {
	contentType string
	content     []byte
}

const index = "index.html"

// contentTypes are the content types of the page's files. The table of the operating system differs between machines.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
}

// readFiles reads the files of the page: no request names a file.
func readFiles(from fs.FS) (map[string]file, error) {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, fmt.Errorf("the files of the page: %w", err)
	}
	files := map[string]file{}
	for _, entry := range entries {
		contentType := contentTypes[path.Ext(entry.Name())]
		if contentType == "" || !entry.Type().IsRegular() {
			continue
		}
		content, err := fs.ReadFile(from, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("the files of the page: %w", err)
		}
		files["/"+entry.Name()] = file{contentType: contentType, content: content}
	}
	if _, ok := files["/"+index]; !ok {
		return nil, errors.New("the files of the page have no " + index)
	}
	return files, nil
}

// isView reports whether a path is a view that the page's script shows.
func isView(path string) bool { return strings.HasPrefix(path, "/v/") }

// servePage serves a file, or the page for one of its views, which the page's script selects.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, path string) *refusal {
	if refused := checkPage(s.door, r, path); refused != nil {
		return refused
	}
	if r.Method != http.MethodGet {
		return refuse(http.StatusMethodNotAllowed, "expected GET")
	}
	name := path
	if path == "/" || isView(path) {
		name = "/" + index
	}
	found, ok := s.files[name]
	if !ok {
		return refuse(http.StatusNotFound, "the page has no such file: %s", s.door.reopen())
	}
	w.Header().Set("Content-Type", found.contentType)
	_, _ = w.Write(found.content)
	return nil
}
