// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// worldDir is the environment variable with the directory of the hub that make world runs. Tests use this hub instead of starting one in each run.
const worldDir = "CLUSTERHUB_TEST_WORLD"

// worldConfig returns the configuration of the hub of make world, which has the flags of all folders that have no controllers of registration.
func worldConfig(dir string) localhub.Options {
	config := sharedConfig(dir, nil)
	config.HubAPIServerArgs = append(config.HubAPIServerArgs, "--agent-writes-burst=100000")
	return config
}

// openWorld returns the hub of make world, or nil if it does not exist or a folder needs a different hub. A hub that does not serve is an error: its
// directory remains when the command that runs it is killed.
func openWorld(dir string, changes []func(*localhub.Options)) (*localhub.Instance, error) {
	has, wants := worldConfig(dir), sharedConfig(dir, changes)
	if dir == "" || !serves(has, wants) || has.Plain != wants.Plain || has.ExternalEtcd != wants.ExternalEtcd || has.Replicas != wants.Replicas {
		return nil, nil
	}
	hub, err := openServing(has)
	if err != nil {
		return nil, fmt.Errorf("%s=%s names a hub that does not serve, start it by make world: %w", worldDir, dir, err)
	}
	return hub, nil
}

// openServing returns the hub in a directory, if the hub is ready.
func openServing(config localhub.Options) (*localhub.Instance, error) {
	if _, err := os.Stat(config.Dir); err != nil {
		return nil, err
	}
	hub, err := localhub.Open(config)
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.BuildConfigFromFlags("", hub.AdminKubeconfig())
	if err != nil {
		return nil, err
	}
	admin.Timeout = Timeout
	c, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return nil, err
	}
	return hub, c.RESTClient().Get().AbsPath("/readyz").Do(context.Background()).Error()
}

// RunWorld runs the hub of make world in its own folder until the context ends. It starts in the root of the repository.
func RunWorld(ctx context.Context, dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.Chdir(filepath.Join("test", "e2e", "harness")); err != nil { // Root is relative to the folder of the tests
		return err
	}
	config := worldConfig(dir)
	config.Log = func(format string, args ...any) { fmt.Printf("  "+format+"\n", args...) }
	// The hub of a killed command may still run.
	if _, err := os.Stat(dir); err == nil {
		former, err := localhub.Open(config)
		if err != nil {
			return err
		}
		former.Kill()
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	hub, err := localhub.Start(ctx, config)
	if err != nil {
		return err
	}
	fmt.Printf(`The hub of end-to-end tests runs until this command is interrupted. It runs the programs of now: after a change of one, start it again.
Tests of another terminal use it, those of folders with other flags start their own:

  export %s=%s
  PACKAGES=./test/e2e/sets hack/test.sh e2e -run TestX
`, worldDir, dir)
	<-ctx.Done()
	hub.Kill()
	return os.RemoveAll(dir)
}
