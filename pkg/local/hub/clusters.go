// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Cluster returns the configuration of a plain cluster beside the hub. Its directory is in that of the hub, and has its name.
func (c Options) Cluster(name string) Options {
	return Options{Dir: filepath.Join(c.Dir, name), BinDir: c.BinDir, ImagesDir: c.ImagesDir, Detach: c.Detach, UnsafeNoFsync: c.UnsafeNoFsync, Plain: true}
}

// Clusters returns the plain clusters beside the hub, by name, whether they run or not.
func (h *Instance) Clusters() (clusters []*Instance, err error) {
	entries, err := os.ReadDir(h.config.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !exists(h.path(entry.Name(), runDir)) {
			continue
		}
		c, err := Open(h.config.Cluster(entry.Name()))
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

// startClusters starts those of Options.Clusters.
func (h *Instance) startClusters(ctx context.Context) error {
	for i := range h.config.Clusters {
		name := clusterName(i)
		h.config.Log("Starting a cluster beside the hub, %s", name)
		c, err := Start(ctx, h.config.Cluster(name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		h.clusters = append(h.clusters, c)
	}
	return nil
}
