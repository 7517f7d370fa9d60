// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assets has the files of the page of `kubectl hub ui`, as they are sent to a browser. They hold no secret and know no hub:
// what a user sees comes from the API, with the rights of the user. app.js is made by hack/ui from pkg/ui/web.
package assets

import "embed"

// FS has index.html, app.js and app.css.
//
//go:embed index.html app.js app.css
var FS embed.FS
