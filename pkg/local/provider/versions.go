// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/klog/v2"
)

// release is a version of Kubernetes, and the folder with its binaries.
type release struct {
	*version.Version
	dir string
}

func (k release) bin(name string) string { return filepath.Join(k.dir, name) }

// versions finds the versions of Kubernetes in a folder of binaries. It runs each binary once.
type versions struct {
	dir string

	mu    sync.Mutex
	known map[string]knownBinary
}

type knownBinary struct {
	modified time.Time
	version  *version.Version
}

// list returns the newest first.
func (v *versions) list(ctx context.Context) ([]release, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, err := filepath.Glob(filepath.Join(v.dir, "*", apiServer))
	if err != nil {
		return nil, err
	}
	var all []release
	for _, bin := range append([]string{filepath.Join(v.dir, apiServer)}, found...) {
		k := release{dir: filepath.Dir(bin)}
		if !exists(bin) || !exists(k.bin(controllerManager)) {
			continue
		}
		k.Version, err = v.versionOf(ctx, bin)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Skipping a binary", "binary", bin)
			continue
		}
		same := func(other release) bool { return other.EqualTo(k.Version) }
		if !slices.ContainsFunc(all, same) {
			all = append(all, k)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no Kubernetes binaries found in %s: install %s and %s there, or in a subdirectory for each version",
			v.dir, apiServer, controllerManager)
	}
	slices.SortStableFunc(all, func(a, b release) int {
		switch {
		case a.GreaterThan(b.Version):
			return -1
		case a.LessThan(b.Version):
			return 1
		}
		return 0
	})
	return all, nil
}

func (v *versions) versionOf(ctx context.Context, bin string) (*version.Version, error) {
	info, err := os.Stat(bin)
	if err != nil {
		return nil, err
	}
	if known, ok := v.known[bin]; ok && known.modified.Equal(info.ModTime()) {
		return known.version, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("getting the version of %s: %w", bin, err)
	}
	// "Kubernetes v1.37.1"
	parsed, err := version.ParseSemantic(strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes "))
	if err != nil {
		return nil, fmt.Errorf("getting the version of %s: %w", bin, err)
	}
	if v.known == nil {
		v.known = map[string]knownBinary{}
	}
	v.known[bin] = knownBinary{info.ModTime(), parsed}
	return parsed, nil
}

// choose returns the version for a cluster that requests wanted and currently has has; both may be "".
func (v *versions) choose(ctx context.Context, wanted, has string) (release, error) {
	all, err := v.list(ctx)
	if err != nil {
		return release{}, err
	}
	if wanted == "" && has == "" {
		return all[0], nil
	}
	// A cluster that specifies no version retains its version, also when newer binaries exist.
	chosen, there := cmp.Or(wanted, has), []string{}
	for _, k := range all {
		if k.String() != chosen {
			there = append(there, k.String())
			continue
		}
		if before, err := version.ParseSemantic(cmp.Or(has, chosen)); err != nil || k.LessThan(before) {
			return release{}, fmt.Errorf("the cluster runs Kubernetes %s and cannot be downgraded to %s", has, chosen)
		}
		return k, nil
	}
	return release{}, fmt.Errorf("no Kubernetes %s in %s: available versions are %s", chosen, v.dir, strings.Join(there, ", "))
}
