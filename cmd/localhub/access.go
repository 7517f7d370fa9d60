// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// The example's provider, whose profile is dev.local.default.
const providerEnvironment, providerName = "dev", "local"

func accessExample(root, name string) string {
	return filepath.Join(root, "artifacts", "examples", "access", name)
}

func accessLoaded(hub *localhub.Instance) string { return filepath.Join(hub.Dir(), "access-loaded") }

// startProvider starts the provider of clusters on this machine. The first time it requests a cluster, and access to it. Later it preserves the
// changes of users.
func startProvider(ctx context.Context, hub *localhub.Instance, root string) error {
	printLine("Starting cluster provider %s", providerName)
	if err := kubectl(ctx, hub, "apply", "--server-side", "--force-conflicts", "-f", accessExample(root, "provider.yaml")); err != nil {
		return err
	}
	if err := hub.StartLocalProvider(ctx, providerEnvironment, providerName); err != nil {
		return err
	}
	if _, err := os.Stat(accessLoaded(hub)); err == nil {
		return nil
	}
	printLine("Requesting cluster teams/blue, and access teams/ann to it")
	return kubectl(ctx, hub, "apply", "--server-side",
		"-f", accessExample(root, "cluster.yaml"), "-f", accessExample(root, "accessrequest.yaml"))
}

// awaitAccess waits until the example's cluster can be used. After the first time it may have been deleted or changed by a user.
func awaitAccess(ctx context.Context, hub *localhub.Instance) error {
	if _, err := os.Stat(accessLoaded(hub)); err == nil {
		if kubectl(ctx, hub, "get", "-n", "teams", "cluster", "blue") != nil {
			return nil
		}
		printLine("Waiting for teams/blue")
		if kubectl(ctx, hub, "wait", "-n", "teams", "cluster/blue", "--for=condition=Ready", "--timeout=60s") != nil {
			printLine("It is not ready yet: see `kubectl describe cluster blue -n teams`")
		}
		return nil
	}
	printLine("Waiting for teams/blue")
	err := kubectl(ctx, hub, "wait", "-n", "teams", "accessrequest/ann", "--for=jsonpath={.status.phase}=Granted", "--timeout=3m")
	if err != nil {
		return err
	}
	return os.WriteFile(accessLoaded(hub), nil, 0o600)
}
