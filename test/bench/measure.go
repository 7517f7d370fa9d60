// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"net/http"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

var (
	//go:embed peer.yaml
	peerManifest []byte
	//go:embed roles.yaml
	rolesManifest []byte
)

// comparison compares the clusters of a hub with the peer's.
type comparison struct {
	*env
	results           *clustersResults
	creates, statuses [2]*rates // ours and the peer's
	empty             memory
}

// withoutRegistration returns a function that configures the hub that is compared with the peer: the work of registration controllers on a cluster must
// not be compared with a plain object.
func withoutRegistration(o options) func(*localhub.Options) error {
	return func(c *localhub.Options) error {
		c.WithoutKubeControllerManager, c.WithoutHubControllerManager = o.serversOnly, o.serversOnly
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
		return nil
	}
}

// measureClusters compares the clusters of a hub with the peer's, and adds the results to r.
func measureClusters(ctx context.Context, e *env, r *clustersResults) error {
	r.fleet = e.options.fleet
	c := &comparison{env: e, results: r}
	for i := range c.creates {
		c.creates[i], c.statuses[i] = &rates{}, &rates{}
	}
	return c.measure(ctx)
}

// prepare creates the custom resource definition, the user's role and all sets.
func (c *comparison) prepare(ctx context.Context) error {
	c.steps.step("Making the peer's CustomResourceDefinition and the user's role")
	if err := c.apply(ctx, peerManifest, rolesManifest); err != nil {
		return err
	}
	front, err := newClient(c.front())
	if err != nil {
		return err
	}
	for _, path := range []string{peerClusters, ourClusters, ourSets, ourMembers} {
		if err := eventually(ctx, func() error {
			_, err := front.list(ctx, path)
			return err
		}); err != nil {
			return err
		}
	}
	sets := c.options.fleet / setSize
	c.steps.step("Making %d sets", sets)
	for i := range sets {
		if err := front.do(ctx, http.MethodPost, ourSets, "application/json", setBody(i), &bytes.Buffer{}); err != nil {
			return err
		}
	}
	return nil
}

// measure compares with the peer, in order. Clusters exist from the first step on, whatever is measured.
func (c *comparison) measure(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.measureMemory(ctx, "empty"); err != nil {
		return err
	}
	for _, stage := range c.stages() {
		if err := c.fill(ctx, stage.from, stage.to); err != nil {
			return err
		}
		last := stage.to == c.options.fleet
		if last {
			c.reportWrites()
			if err := c.measureMemory(ctx, memoryFilled); err != nil {
				return err
			}
		}
		if c.options.wants("a") {
			if err := lists(ctx, c.env, c.results, stage.to, last); err != nil {
				return err
			}
		}
	}
	if c.options.wants("d") {
		if err := watches(ctx, c.env, c.results); err != nil {
			return err
		}
	}
	if c.options.wants("e") {
		if err := restarts(ctx, c.env, c.results); err != nil {
			return err
		}
		return c.measureMemory(ctx, memoryRestarted)
	}
	return nil
}

// stage is a part of the fleet: the clusters from (inclusive) to (exclusive).
type stage struct{ from, to int }

// stages returns the parts in which the fleet is created.
func (c *comparison) stages() []stage {
	if c.options.fleet > stageSize && c.options.wants("a") {
		return []stage{{0, stageSize}, {stageSize, c.options.fleet}}
	}
	return []stage{{0, c.options.fleet}}
}
