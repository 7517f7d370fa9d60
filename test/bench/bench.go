// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// user is the user of roles.yaml.
const user = "bench"

var (
	//go:embed peer.yaml
	peerManifest []byte
	//go:embed roles.yaml
	rolesManifest []byte
)

// bench is a run of the benchmark.
type bench struct {
	options options
	config  localhub.Options
	hub     *localhub.Instance
	report  *report
	steps   progress
	creates [2]*rates // ours and the peer's
	status  [2]*rates
	empty   memory
	// others returns processes that are measured in addition to those of the hub. It may be nil.
	others func() map[string]int
}

func newBench(o options) (*bench, error) {
	b := &bench{options: o, report: newReport(o)}
	for i := range b.creates {
		b.creates[i], b.status[i] = &rates{}, &rates{}
	}
	for _, dir := range []string{o.output, o.profileDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// withHub measures on a hub of its own.
func (b *bench) withHub(ctx context.Context, adapt func(*localhub.Options) error, measure func(context.Context) error) error {
	o := b.options
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
	b.config = localhub.Options{
		Dir: dir, BinDir: bin, ExternalEtcd: o.externalEtcd, UnsafeNoFsync: o.noFsync,
		Log: func(format string, args ...any) { b.steps.step(format, args...) },
		// The clusters of the fleet are not accepted. They are counted nevertheless, as on every hub.
		HubAPIServerArgs: []string{"--max-pending-clusters=1000000"},
	}
	if err := adapt(&b.config); err != nil {
		return err
	}
	b.hub, err = localhub.Start(ctx, b.config)
	if err != nil {
		return err
	}
	defer func() {
		b.steps.step("Stopping the hub")
		b.hub.Stop()
		b.steps.end()
	}()
	return measure(ctx)
}

// withoutRegistration configures the hub that is compared with the peer: the work of registration controllers on a cluster must not be compared with
// a plain object.
func (b *bench) withoutRegistration(c *localhub.Options) error {
	c.WithoutKubeControllerManager, c.WithoutHubControllerManager = b.options.serversOnly, b.options.serversOnly
	c.HubControllerManagerArgs = []string{"--registration-drivers="}
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
func (b *bench) front() *rest.Config { return b.hub.UserConfig(user) }

// direct returns the user's configuration for hub-apiserver without the front.
func (b *bench) direct() *rest.Config { return b.hub.HubAPIServerUserConfig(0, user) }

// prepare creates the custom resource definition, the user's role and all sets.
func (b *bench) prepare(ctx context.Context) error {
	b.steps.step("Making the peer's CustomResourceDefinition and the user's role")
	if err := b.apply(ctx, peerManifest, rolesManifest); err != nil {
		return err
	}
	front, err := newClient(b.front())
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
	sets := b.options.fleet / setSize
	b.steps.step("Making %d sets", sets)
	for i := range sets {
		if err := front.do(ctx, http.MethodPost, ourSets, "application/json", setBody(i), &bytes.Buffer{}); err != nil {
			return err
		}
	}
	return nil
}

// apply applies manifests as the hub's admin.
func (b *bench) apply(ctx context.Context, manifests ...[]byte) error {
	return apply(b.hub.Kubectl(ctx, "apply", "--server-side", "-f", "-"), manifests...)
}

// apply applies manifests with kubectl.
func apply(kubectl *exec.Cmd, manifests ...[]byte) error {
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
