// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
)

// viewer is the user of viewer.yaml, who sees the first set and nothing else.
const viewer = "bench-viewer"

//go:embed viewer.yaml
var viewerManifest []byte

// Names of the viewer's listings in the report.
const (
	listViewerMembers  = "members, by a user with one set"
	listViewerClusters = "clusters, by a user with one set"
)

// viewings are the lists of a user with one set, who selects nothing. They come at the end: what a user sees of the clusters is computed from
// the first request on, which costs memory.
func (b *bench) viewings(ctx context.Context) ([]*listing, error) {
	if err := b.apply(ctx, viewerManifest); err != nil {
		return nil, err
	}
	client, err := newClient(b.hub.UserConfig(viewer))
	if err != nil {
		return nil, err
	}
	all := func(path string) func(string) string { return func(string) string { return path } }
	return []*listing{
		{name: listViewerMembers, client: client, path: all(ourMembers)},
		{name: listViewerClusters, client: client, path: all(ourVisible)},
	}, nil
}
