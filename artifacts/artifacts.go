// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts has the manifests of this folder inside, for the programs that deploy them.
package artifacts

import "embed"

// Deploy is the folder deploy.
//
//go:embed deploy
var Deploy embed.FS
