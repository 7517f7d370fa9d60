// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusters compares the clusters of a hub with the same clusters as custom resources: (a) to (e).
package clusters

import (
	"bytes"
	"context"
	_ "embed"
	"net/http"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/bench/kit"
)

var (
	//go:embed peer.yaml
	peerManifest []byte
	//go:embed roles.yaml
	rolesManifest []byte
)

// comparison compares the clusters of a hub with the peer's.
type comparison struct {
	*kit.Env
	results           *Results
	creates, statuses [2]*kit.Rates // ours and the peer's
	empty             kit.Memory
}

// WithoutRegistration returns a function that configures the hub that is compared with the peer: the work of registration controllers on a cluster must
// not be compared with a plain object.
func WithoutRegistration(o kit.Options) func(*localhub.Options) error {
	return func(c *localhub.Options) error {
		c.WithoutKubeControllerManager, c.WithoutHubControllerManager = o.ServersOnly, o.ServersOnly
		c.HubControllerManagerArgs = []string{"--registration-drivers="}
		return nil
	}
}

// Measure compares the clusters of a hub with the peer's, and adds the results to r.
func Measure(ctx context.Context, e *kit.Env, r *Results) error {
	r.fleet = e.Options.Fleet
	c := &comparison{Env: e, results: r}
	for i := range c.creates {
		c.creates[i], c.statuses[i] = &kit.Rates{}, &kit.Rates{}
	}
	return c.measure(ctx)
}

// prepare creates the custom resource definition, the user's role and all sets.
func (c *comparison) prepare(ctx context.Context) error {
	c.Steps.Step("Making the peer's CustomResourceDefinition and the user's role")
	if err := c.Apply(ctx, peerManifest, rolesManifest); err != nil {
		return err
	}
	front, err := kit.NewClient(c.Front())
	if err != nil {
		return err
	}
	for _, path := range []string{kit.PeerClustersPath, kit.ClustersPath, kit.SetsPath, kit.MembersPath} {
		if err := kit.Eventually(ctx, func() error {
			_, err := front.List(ctx, path)
			return err
		}); err != nil {
			return err
		}
	}
	sets := c.Options.Fleet / kit.SetSize
	c.Steps.Step("Making %d sets", sets)
	for i := range sets {
		if err := front.Do(ctx, http.MethodPost, kit.SetsPath, "application/json", kit.SetBody(i), &bytes.Buffer{}); err != nil {
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
		last := stage.to == c.Options.Fleet
		if last {
			c.reportWrites()
			if err := c.measureMemory(ctx, memoryFilled); err != nil {
				return err
			}
		}
		if c.Options.Wants("a") {
			if err := lists(ctx, c.Env, c.results, stage.to, last); err != nil {
				return err
			}
		}
	}
	if c.Options.Wants("d") {
		if err := watches(ctx, c.Env, c.results); err != nil {
			return err
		}
	}
	if c.Options.Wants("e") {
		if err := restarts(ctx, c.Env, c.results); err != nil {
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
	if c.Options.Fleet > kit.StageSize && c.Options.Wants("a") {
		return []stage{{0, kit.StageSize}, {kit.StageSize, c.Options.Fleet}}
	}
	return []stage{{0, c.Options.Fleet}}
}
