// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"
)

// Names of the listings in the report.
const (
	listMembersDirect = "members, direct"
	listMembersFront  = "members, through the front"
	listLabelDirect   = "clusters by label, direct"
	listLabelFront    = "clusters by label, through the front"
	listPeer          = "peer: custom resources by label"
)

// lists measures all ways to list a set, in turns. Bodies are read completely and not decoded, in JSON for all. Bodies over 128 KiB are compressed,
// as for all clients by default.
func lists(ctx context.Context, e *env, r *clustersResults, fleet int, last bool) error {
	e.steps.step("Listing one set of %d at %d clusters, %d rounds", setSize, fleet, e.options.rounds)
	ways, err := listings(e)
	if err != nil {
		return err
	}
	sets := fleet / setSize
	for _, l := range ways {
		if err := l.check(ctx, setSize); err != nil {
			return err
		}
		for range 5 {
			if _, err := l.once(ctx, sets); err != nil {
				return err
			}
		}
	}
	if err := listInTurns(ctx, e, ways, e.options.lists, sets); err != nil {
		return err
	}
	r.addLists(fleet, ways)
	if last && e.options.profileDir != "" {
		return profileLists(ctx, e, ways, sets)
	}
	return nil
}

func listings(e *env) ([]*listing, error) {
	front, err := newClient(e.front())
	if err != nil {
		return nil, err
	}
	direct, err := newClient(e.direct())
	if err != nil {
		return nil, err
	}
	version := ""
	if e.options.resourceVersion != "" {
		version = "&resourceVersion=" + e.options.resourceVersion
	}
	members := func(set string) string { return ourMembers + "?" + bySetField(set) + version }
	label := func(set string) string { return ourClusters + "?" + bySetLabel(set) + version }
	peers := func(set string) string { return peerClusters + "?" + bySetLabel(set) + version }
	return []*listing{
		{name: listMembersDirect, client: direct, path: members},
		{name: listMembersFront, client: front, path: members},
		{name: listLabelDirect, client: direct, path: label},
		{name: listLabelFront, client: front, path: label},
		{name: listPeer, client: front, path: peers},
	}, nil
}

// profileLists profiles hub-apiserver during lists, apart from the measurements.
func profileLists(ctx context.Context, e *env, listings []*listing, sets int) error {
	const seconds = 10
	for _, l := range listings {
		if l.name != listMembersDirect && l.name != listLabelDirect {
			continue
		}
		e.steps.step("Profiling lists of %s", l.name)
		name := "list-" + strings.ReplaceAll(strings.ReplaceAll(l.name, ",", ""), " ", "-")
		profiled := e.cpuProfile(ctx, name, seconds)
		for begun := time.Now(); time.Since(begun) < seconds*time.Second; {
			if _, err := l.once(ctx, sets); err != nil {
				return err
			}
		}
		profiled()
	}
	return nil
}
