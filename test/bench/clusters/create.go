// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"bytes"
	"context"
	"net/http"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

// fill creates clusters from (inclusive) to (exclusive), alternating between both kinds, and sets their status.
func (c *comparison) fill(ctx context.Context, from, to int) error {
	clients, err := kit.NewClients(c.Front(), kit.Connections)
	if err != nil {
		return err
	}
	for _, client := range clients {
		for _, path := range []string{kit.SetsPath, kit.PeerClustersPath} {
			if err := client.Get(ctx, path+"?limit=1", &bytes.Buffer{}); err != nil {
				return err
			}
		}
	}
	var creates, statuses []kit.Write
	kinds := []kit.Kind{kit.Ours, kit.Peer}
	if !c.Options.Wants("abcde") {
		kinds = kinds[:1] // without a comparison with the peer
	}
	for i, k := range kinds {
		creates = append(creates, kit.Write{Method: http.MethodPost, ContentType: "application/json", Rates: c.creates[i],
			Path: func(int) string { return k.Path }, Body: func(i int) []byte { return kit.ClusterBody(k, i) }})
		statuses = append(statuses, kit.Write{Method: http.MethodPatch, ContentType: kit.MergePatch, Rates: c.statuses[i],
			Path: func(i int) string { return k.Path + "/" + kit.ClusterName(i) + "/status" }, Body: kit.StatusBody})
	}
	c.Steps.Step("Creating %d clusters of %d kinds, %d writers", to-from, len(kinds), c.Options.Writers)
	if err := c.WriteInTurns(ctx, clients, "create", creates, kit.CreationOrder(from, to)); err != nil {
		return err
	}
	if !c.Options.Status {
		return nil
	}
	c.Steps.Step("Writing the status of each")
	return c.WriteInTurns(ctx, clients, "status", statuses, kit.CreationOrder(from, to))
}

func (c *comparison) reportWrites() {
	if !c.Options.Wants("b") {
		return
	}
	c.results.addWrites("create", c.creates)
	if c.Options.Status {
		c.results.addWrites("status patch", c.statuses)
	}
}
