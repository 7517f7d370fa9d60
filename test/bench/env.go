// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// user is the user of roles.yaml.
const user = "bench"

// env is a hub that is measured, with what all measurements share.
type env struct {
	options options
	config  localhub.Options
	hub     *localhub.Instance
	steps   progress
	// others returns processes that are measured in addition to those of the hub. It may be nil.
	others func() map[string]int
}

// withHub starts a hub, calls measure with it, and stops the hub. adapt changes the configuration of the hub.
func withHub(ctx context.Context, o options, adapt func(*localhub.Options) error, measure func(context.Context, *env) error) error {
	dir, err := os.MkdirTemp(o.output, "hub-")
	if err != nil {
		return err
	}
	defer func() {
		if !o.keep {
			_ = os.RemoveAll(dir)
		}
	}()
	bin := o.binDir
	if o.hubBinDir != "" {
		bin, err = mergedBin(dir, o.binDir, o.hubBinDir)
		if err != nil {
			return err
		}
	}
	e := &env{options: o}
	e.config = localhub.Options{
		Dir: dir, BinDir: bin, ExternalEtcd: o.externalEtcd, UnsafeNoFsync: o.noFsync,
		Log: func(format string, args ...any) { e.steps.step(format, args...) },
		// The clusters of the fleet are not accepted. They are counted nevertheless, as on every hub.
		HubAPIServerArgs: []string{"--max-pending-clusters=1000000"},
	}
	if err := adapt(&e.config); err != nil {
		return err
	}
	if err := e.startHub(ctx); err != nil {
		return err
	}
	defer func() {
		e.steps.step("Stopping the hub")
		e.hub.Stop()
		e.steps.end()
	}()
	return measure(ctx, e)
}

// startHub starts the hub, also again after it was stopped.
func (e *env) startHub(ctx context.Context) error {
	hub, err := localhub.Start(ctx, e.config)
	if err != nil {
		return err
	}
	e.hub = hub
	return nil
}

// mergedBin creates a directory with the binaries of both directories. Those of ours have precedence.
func mergedBin(dir, all, ours string) (string, error) {
	merged := filepath.Join(dir, "bin")
	if err := os.MkdirAll(merged, 0o755); err != nil {
		return "", err
	}
	for _, from := range []string{ours, all} {
		from, err := filepath.Abs(from)
		if err != nil {
			return "", err
		}
		entries, err := os.ReadDir(from)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(merged, e.Name()))
			if err != nil && !errors.Is(err, os.ErrExist) {
				return "", err
			}
		}
	}
	return merged, nil
}

// front returns the user's configuration for the front.
func (e *env) front() *rest.Config { return e.hub.UserConfig(user) }

// direct returns the user's configuration for hub-apiserver without the front.
func (e *env) direct() *rest.Config { return e.hub.HubAPIServerUserConfig(0, user) }

// apply applies manifests as the hub's admin.
func (e *env) apply(ctx context.Context, manifests ...[]byte) error {
	return applyTo(ctx, e.hub, manifests...)
}

// applyTo applies manifests to a hub or a cluster as its admin.
func applyTo(ctx context.Context, to *localhub.Instance, manifests ...[]byte) error {
	kubectl := to.Kubectl(ctx, "apply", "--server-side", "-f", "-")
	kubectl.Stdin = bytes.NewReader(bytes.Join(manifests, []byte("\n---\n")))
	if out, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// eventually retries f until it succeeds. After a minute it returns the last error.
func eventually(ctx context.Context, f func() error) error {
	var last error
	try := func(context.Context) (bool, error) {
		last = f()
		return last == nil, nil
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, try)
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}
