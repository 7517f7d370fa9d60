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

// measureViews measures lists of what a user may see by sets, and the cost of the first one. hub-apiserver is restarted first, because it caches data for
// the view from the first request on.
func measureViews(ctx context.Context, e *env) (result *viewResult, err error) {
	if err := e.apply(ctx, viewerManifest); err != nil {
		return nil, err
	}
	e.steps.step("Restarting hub-apiserver, which nobody has asked for a view then")
	e.hub.StopHubAPIServer(0)
	if err := e.hub.StartHubAPIServer(ctx, 0); err != nil {
		return nil, err
	}
	viewings, err := viewingsOf(e)
	if err != nil {
		return nil, err
	}
	first := viewings[0]
	for _, l := range []*listing{first.members, first.plain} {
		if err := l.check(ctx, first.count); err != nil {
			return nil, err
		}
	}
	before, err := e.settledMemory(ctx, "unseen")
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := first.clusters.check(ctx, first.count); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	after, err := e.settledMemory(ctx, "seen")
	if err != nil {
		return nil, err
	}
	result = newViewResult(e.options.fleet, took, before["hub-apiserver"], after["hub-apiserver"])
	for _, v := range viewings {
		if err := v.measure(ctx, e); err != nil {
			return result, fmt.Errorf("%s: %w", v.of, err)
		}
		result.add(v)
	}
	return result, nil
}

// viewingsOf returns those of a small set, of a set of all clusters, and of its first page.
func viewingsOf(e *env) ([]*viewing, error) {
	way := func(name, user, path string) (*listing, error) {
		client, err := newClient(e.hub.HubAPIServerUserConfig(0, user))
		return &listing{name: name, client: client, path: func(string) string { return path }}, err
	}
	all := e.options.fleet
	page := fmt.Sprintf("?limit=%d", pageSize)
	var viewings []*viewing
	for _, v := range []struct {
		of, user, selects, separator string
		count, lists                 int
	}{
		{fmt.Sprintf("one set of %d", setSize), viewer, "", "?" + bySetLabel(setName(0)), setSize, e.options.lists},
		{fmt.Sprintf("one set of all %d", all), wholeViewer, "", "", all, 1},
		{fmt.Sprintf("one set of all %d, %d of them", all, pageSize), wholeViewer, page, page, min(all, pageSize), max(1, e.options.lists/5)},
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

// measure measures the three ways in turns.
func (v *viewing) measure(ctx context.Context, e *env) error {
	e.steps.step("Listing %s, %d rounds", v.of, e.options.rounds)
	listings := []*listing{v.clusters, v.members, v.plain}
	for _, l := range listings {
		if err := l.check(ctx, v.count); err != nil {
			return err
		}
	}
	return listInTurns(ctx, e, listings, v.lists, 1)
}
