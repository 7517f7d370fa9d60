// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package views measures what users see of clusters by their sets: (j).
package views

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// viewer and wholeViewer are the users of roles.yaml: each may see one set, and uses no selector.
const (
	viewer      = "bench-viewer"
	wholeViewer = "bench-viewer-whole"
)

//go:embed roles.yaml
var viewerManifest []byte

// pageSize is kubectl's number of clusters in a page.
const pageSize = 500

// comparison is one way to read clusters by the view, with the two ways that it is compared with.
type comparison struct {
	// of describes these clusters.
	of string
	// clusters lists the view, members lists their members by the same user, and plain lists the stored clusters by a user who may list all.
	clusters, members, plain *kit.Listing
	// count is the number of clusters, and lists the number of lists in a round.
	count, lists int
}

// Measure measures lists of what a user may see by sets, and the cost of the first one. hub-apiserver is restarted first, because it caches data for
// the view from the first request on.
func Measure(ctx context.Context, e *kit.Env) (result *Result, err error) {
	if err := e.Apply(ctx, viewerManifest); err != nil {
		return nil, err
	}
	e.Steps.Step("Restarting hub-apiserver, before the first request for a view")
	e.Hub.StopHubAPIServer(0)
	if err := e.Hub.StartHubAPIServer(ctx, 0); err != nil {
		return nil, err
	}
	viewings, err := comparisons(e)
	if err != nil {
		return nil, err
	}
	first := viewings[0]
	for _, l := range []*kit.Listing{first.members, first.plain} {
		if err := l.Check(ctx, first.count); err != nil {
			return nil, err
		}
	}
	before, err := e.SettledMemory(ctx, "unseen")
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := first.clusters.Check(ctx, first.count); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	after, err := e.SettledMemory(ctx, "seen")
	if err != nil {
		return nil, err
	}
	result = newResult(e.Options.Fleet, took, before["hub-apiserver"], after["hub-apiserver"])
	for _, v := range viewings {
		if err := v.measure(ctx, e); err != nil {
			return result, fmt.Errorf("%s: %w", v.of, err)
		}
		result.add(v)
	}
	return result, nil
}

// comparisons returns those of a small set, of a set of all clusters, and of its first page.
func comparisons(e *kit.Env) ([]*comparison, error) {
	way := func(name, user, path string) (*kit.Listing, error) {
		client, err := kit.NewClient(e.Hub.HubAPIServerUserConfig(0, user))
		return &kit.Listing{Name: name, Client: client, Path: func(string) string { return path }}, err
	}
	all := e.Options.Fleet
	page := fmt.Sprintf("?limit=%d", pageSize)
	var viewings []*comparison
	for _, v := range []struct {
		of, user, selects, separator string
		count, lists                 int
	}{
		{fmt.Sprintf("one set of %d", kit.SetSize), viewer, "", "?" + kit.BySetLabel(kit.SetName(0)), kit.SetSize, e.Options.Lists},
		{fmt.Sprintf("one set of all %d", all), wholeViewer, "", "", all, 1},
		{fmt.Sprintf("one set of all %d, %d of them", all, pageSize), wholeViewer, page, page, min(all, pageSize), max(1, e.Options.Lists/5)},
	} {
		result := &comparison{of: v.of, count: v.count, lists: v.lists}
		var err error
		result.clusters, err = way("clusters by the view", v.user, kit.VisiblePath+v.selects)
		if err != nil {
			return nil, err
		}
		result.members, err = way("members", v.user, kit.MembersPath+v.selects)
		if err != nil {
			return nil, err
		}
		result.plain, err = way("stored clusters", kit.User, kit.ClustersPath+v.separator)
		if err != nil {
			return nil, err
		}
		viewings = append(viewings, result)
	}
	return viewings, nil
}

// measure measures the three ways in turns.
func (v *comparison) measure(ctx context.Context, e *kit.Env) error {
	e.Steps.Step("Listing %s, %d rounds", v.of, e.Options.Rounds)
	listings := []*kit.Listing{v.clusters, v.members, v.plain}
	for _, l := range listings {
		if err := l.Check(ctx, v.count); err != nil {
			return err
		}
	}
	return kit.ListInTurns(ctx, e, listings, v.lists, 1)
}
