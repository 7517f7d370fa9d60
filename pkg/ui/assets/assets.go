// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package assets has the files of the page of `kubectl hub ui`, as they are sent to a browser. They contain no secrets, and depend on no hub: what a
// user sees comes from the API, with the permissions of the user. hack/gen/ui builds app.js from pkg/ui/web.
package assets

import "embed"

// FS has index.html, app.js and app.css.
//
//go:embed index.html app.js app.css
var FS embed.FS
