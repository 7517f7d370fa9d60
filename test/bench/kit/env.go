// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit has what the measurements of the benchmark share: a hub that is measured, clients, writes and lists, processor times and memory, and how
// results are printed and compared with targets.
package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// User is the user that the front and hub-apiserver are measured with.
const User = "bench"

// Env is a hub that is measured, with what all measurements share.
type Env struct {
	Options Options
	Config  localhub.Options
	Hub     *localhub.Instance
	Steps   Progress
	// Others returns processes that are measured in addition to those of the hub. It may be nil.
	Others func() map[string]int
}

// WithHub starts a hub, calls measure with it, and stops the hub. adapt changes the configuration of the hub.
func WithHub(ctx context.Context, o Options, adapt func(*localhub.Options) error, measure func(context.Context, *Env) error) error {
	dir, err := os.MkdirTemp(o.Output, "hub-")
	if err != nil {
		return err
	}
	defer func() {
		if !o.Keep {
			_ = os.RemoveAll(dir)
		}
	}()
	bin := o.BinDir
	if o.HubBinDir != "" {
		bin, err = mergedBin(dir, o.BinDir, o.HubBinDir)
		if err != nil {
			return err
		}
	}
	e := &Env{Options: o}
	e.Config = localhub.Options{
		Dir: dir, BinDir: bin, ExternalEtcd: o.ExternalEtcd, UnsafeNoFsync: o.NoFsync,
		Log: func(format string, args ...any) { e.Steps.Step(format, args...) },
		// The clusters of the fleet are not accepted. They are counted nevertheless, as on every hub.
		HubAPIServerArgs: []string{"--max-pending-clusters=1000000"},
	}
	if err := adapt(&e.Config); err != nil {
		return err
	}
	if err := e.StartHub(ctx); err != nil {
		return err
	}
	defer func() {
		e.Steps.Step("Stopping the hub")
		e.Hub.Stop()
		e.Steps.end()
	}()
	return measure(ctx, e)
}

// StartHub starts the hub, also again after it was stopped.
func (e *Env) StartHub(ctx context.Context) error {
	hub, err := localhub.Start(ctx, e.Config)
	if err != nil {
		return err
	}
	e.Hub = hub
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

// Front returns the user's configuration for the front.
func (e *Env) Front() *rest.Config { return e.Hub.UserConfig(User) }

// Direct returns the user's configuration for hub-apiserver without the front.
func (e *Env) Direct() *rest.Config { return e.Hub.HubAPIServerUserConfig(0, User) }

// Apply applies manifests as the hub's admin.
func (e *Env) Apply(ctx context.Context, manifests ...[]byte) error {
	return ApplyTo(ctx, e.Hub, manifests...)
}

// ApplyTo applies manifests to a hub or a cluster as its admin.
func ApplyTo(ctx context.Context, to *localhub.Instance, manifests ...[]byte) error {
	kubectl := to.Kubectl(ctx, "apply", "--server-side", "-f", "-")
	kubectl.Stdin = bytes.NewReader(bytes.Join(manifests, []byte("\n---\n")))
	if out, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Eventually retries f until it succeeds. After a minute it returns the last error.
func Eventually(ctx context.Context, f func() error) error {
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
