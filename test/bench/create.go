// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
)

// fill creates clusters from (inclusive) to (exclusive), alternating between both kinds, and sets their status.
func (c *comparison) fill(ctx context.Context, from, to int) error {
	clients, err := newClients(c.front(), connections)
	if err != nil {
		return err
	}
	for _, client := range clients {
		for _, path := range []string{ourSets, peerClusters} {
			if err := client.get(ctx, path+"?limit=1", &bytes.Buffer{}); err != nil {
				return err
			}
		}
	}
	var creates, statuses []write
	kinds := []kind{ours, peer}
	if !c.options.wants("abcde") {
		kinds = kinds[:1] // without a comparison with the peer
	}
	for i, k := range kinds {
		creates = append(creates, write{method: http.MethodPost, contentType: "application/json", rates: c.creates[i],
			path: func(int) string { return k.path }, body: func(i int) []byte { return clusterBody(k, i) }})
		statuses = append(statuses, write{method: http.MethodPatch, contentType: mergePatch, rates: c.statuses[i],
			path: func(i int) string { return k.path + "/" + clusterName(i) + "/status" }, body: statusBody})
	}
	c.steps.step("Creating %d clusters of %d kinds, %d writers", to-from, len(kinds), c.options.writers)
	if err := c.writeInTurns(ctx, clients, "create", creates, order(from, to)); err != nil {
		return err
	}
	if !c.options.status {
		return nil
	}
	c.steps.step("Writing the status of each")
	return c.writeInTurns(ctx, clients, "status", statuses, order(from, to))
}

func (c *comparison) reportWrites() {
	if !c.options.wants("b") {
		return
	}
	c.results.addWrites("create", c.creates)
	if c.options.status {
		c.results.addWrites("status patch", c.statuses)
	}
}
