// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
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
func lists(ctx context.Context, e *kit.Env, r *Results, fleet int, last bool) error {
	e.Steps.Step("Listing one set of %d at %d clusters, %d rounds", kit.SetSize, fleet, e.Options.Rounds)
	ways, err := listings(e)
	if err != nil {
		return err
	}
	sets := fleet / kit.SetSize
	for _, l := range ways {
		if err := l.Check(ctx, kit.SetSize); err != nil {
			return err
		}
		for range 5 {
			if _, err := l.Once(ctx, sets); err != nil {
				return err
			}
		}
	}
	if err := kit.ListInTurns(ctx, e, ways, e.Options.Lists, sets); err != nil {
		return err
	}
	r.addLists(fleet, ways)
	if last && e.Options.ProfileDir != "" {
		return profileLists(ctx, e, ways, sets)
	}
	return nil
}

func listings(e *kit.Env) ([]*kit.Listing, error) {
	front, err := kit.NewClient(e.Front())
	if err != nil {
		return nil, err
	}
	direct, err := kit.NewClient(e.Direct())
	if err != nil {
		return nil, err
	}
	version := ""
	if e.Options.ResourceVersion != "" {
		version = "&resourceVersion=" + e.Options.ResourceVersion
	}
	members := func(set string) string { return kit.MembersPath + "?" + kit.BySetField(set) + version }
	label := func(set string) string { return kit.ClustersPath + "?" + kit.BySetLabel(set) + version }
	peers := func(set string) string { return kit.PeerClustersPath + "?" + kit.BySetLabel(set) + version }
	return []*kit.Listing{
		{Name: listMembersDirect, Client: direct, Path: members},
		{Name: listMembersFront, Client: front, Path: members},
		{Name: listLabelDirect, Client: direct, Path: label},
		{Name: listLabelFront, Client: front, Path: label},
		{Name: listPeer, Client: front, Path: peers},
	}, nil
}

// profileLists profiles hub-apiserver during lists, apart from the measurements.
func profileLists(ctx context.Context, e *kit.Env, listings []*kit.Listing, sets int) error {
	const seconds = 10
	for _, l := range listings {
		if l.Name != listMembersDirect && l.Name != listLabelDirect {
			continue
		}
		e.Steps.Step("Profiling lists of %s", l.Name)
		name := "list-" + strings.ReplaceAll(strings.ReplaceAll(l.Name, ",", ""), " ", "-")
		profiled := e.CPUProfile(ctx, name, seconds)
		for begun := time.Now(); time.Since(begun) < seconds*time.Second; {
			if _, err := l.Once(ctx, sets); err != nil {
				return err
			}
		}
		profiled()
	}
	return nil
}
