// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"
)

// viewer and wholeViewer are the users of viewer.yaml: each may see one set, and uses no selector.
const (
	viewer      = "bench-viewer"
	wholeViewer = "bench-viewer-whole"
)

//go:embed viewer.yaml
var viewerManifest []byte

// pageSize is kubectl's number of clusters in a page.
const pageSize = 500

// viewing is one way to read clusters by the view, with the two ways that it is compared with.
type viewing struct {
	// of describes these clusters.
	of string
	// clusters lists the view, members lists their members by the same user, and plain lists the stored clusters by a user who may list all.
	clusters, members, plain *listing
	// count is the number of clusters, and lists the number of lists in a round.
	count, lists int
}

// views measures lists of what a user may see by sets, and the cost of the first one. hub-apiserver is restarted first, because it caches data for
// the view from the first request on.
func (b *bench) views(ctx context.Context) error {
	if err := b.apply(ctx, viewerManifest); err != nil {
		return err
	}
	b.steps.step("Restarting hub-apiserver, which nobody has asked for a view then")
	b.hub.StopHubAPIServer(0)
	if err := b.hub.StartHubAPIServer(ctx, 0); err != nil {
		return err
	}
	viewings, err := b.viewings()
	if err != nil {
		return err
	}
	first := viewings[0]
	for _, l := range []*listing{first.members, first.plain} {
		if err := l.check(ctx, first.count); err != nil {
			return err
		}
	}
	before, err := b.settledMemory(ctx, "unseen")
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := first.clusters.check(ctx, first.count); err != nil {
		return err
	}
	took := time.Since(begun)
	after, err := b.settledMemory(ctx, "seen")
	if err != nil {
		return err
	}
	addView(b.report, b.options.fleet, took, before["hub-apiserver"], after["hub-apiserver"])
	for _, v := range viewings {
		if err := b.view(ctx, v); err != nil {
			return fmt.Errorf("%s: %w", v.of, err)
		}
		addViewing(b.report, v)
	}
	return nil
}

// viewings returns those of a small set, of a set of all clusters, and of its first page.
func (b *bench) viewings() ([]*viewing, error) {
	way := func(name, user, path string) (*listing, error) {
		client, err := newClient(b.hub.HubAPIServerUserConfig(0, user))
		return &listing{name: name, client: client, path: func(string) string { return path }}, err
	}
	all := b.options.fleet
	page := fmt.Sprintf("?limit=%d", pageSize)
	var viewings []*viewing
	for _, v := range []struct {
		of, user, selects, separator string
		count, lists                 int
	}{
		{fmt.Sprintf("one set of %d", setSize), viewer, "", "?" + bySetLabel(setName(0)), setSize, b.options.lists},
		{fmt.Sprintf("one set of all %d", all), wholeViewer, "", "", all, 1},
		{fmt.Sprintf("one set of all %d, %d of them", all, pageSize), wholeViewer, page, page, min(all, pageSize), max(1, b.options.lists/5)},
	} {
		result := &viewing{of: v.of, count: v.count, lists: v.lists}
		var err error
		result.clusters, err = way("clusters by the view", v.user, ourVisible+v.selects)
		if err != nil {
			return nil, err
		}
		result.members, err = way("members", v.user, ourMembers+v.selects)
		if err != nil {
			return nil, err
		}
		result.plain, err = way("stored clusters", user, ourClusters+v.separator)
		if err != nil {
			return nil, err
		}
		viewings = append(viewings, result)
	}
	return viewings, nil
}

// view measures the three ways in turns.
func (b *bench) view(ctx context.Context, v *viewing) error {
	b.steps.step("Listing %s, %d rounds", v.of, b.options.rounds)
	listings := []*listing{v.clusters, v.members, v.plain}
	for _, l := range listings {
		if err := l.check(ctx, v.count); err != nil {
			return err
		}
	}
	return b.inTurns(ctx, listings, v.lists, 1)
}
