// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localhub runs a hub in the background, as `make up` and `make down` do.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localhub:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	config := localhub.Config{Detach: true, Log: say}
	root := &cobra.Command{
		Use: "localhub", Short: "Run a hub on this machine, in the background",
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true, // an error is one line
	}
	root.PersistentFlags().StringVar(&config.Dir, "dir", "_output/hub", "Directory of the hub: its data, kubeconfigs and logs.")
	root.PersistentFlags().StringVar(&config.BinDir, "bin-dir", "_output/bin", "Directory of the binaries.")
	root.PersistentFlags().StringVar(&config.Root, "root", ".", "Directory of the repository.")
	root.AddCommand(
		&cobra.Command{Use: "up", Short: "Start what does not run or has changed, and load an example at the first time", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), config) }},
		&cobra.Command{Use: "down", Short: "Stop the hub and keep its data", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return down(config) }},
		&cobra.Command{Use: "clean", Short: "Stop the hub and remove its data", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return clean(config) }},
		&cobra.Command{Use: "status", Short: "Say what runs", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return status(config) }},
	)
	return root
}

func say(format string, args ...any) { fmt.Printf("  "+format+" …\n", args...) }

func up(ctx context.Context, config localhub.Config) error {
	scheduler, err := filepath.Abs(accessExample(config, "scheduler.yaml"))
	if err != nil {
		return err
	}
	config.HubControllerManagerArgs = []string{"--scheduler-config=" + scheduler}
	hub, err := localhub.Start(ctx, config)
	if err != nil {
		return err
	}
	if err := loadFleet(ctx, hub, config.Root); err != nil {
		return err
	}
	if err := startProvider(ctx, hub, config); err != nil {
		return err
	}
	managed, err := startManaged(ctx, hub, config)
	if err != nil {
		return err
	}
	if err := awaitAccess(ctx, hub); err != nil {
		return err
	}
	table, err := membersTable(ctx, hub)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\nThe hub is up. Its logs are in %s; `make down` stops it and keeps its data.\n"+
		"%s is a cluster of its own that has joined it; its kubeconfig is %s. Next:\n\n"+
		"  export KUBECONFIG=%s PATH=%s:$PATH\n  kubectl get clustersetmembers --as dana --as-group dev-team\n  kubectl hub get clusters\n"+
		"  kubectl get clusterprofiles,clusters,accessrequests -A\n  kubectl hub access blue -n teams --cluster-role view\n"+
		"  kubectl --context teams--blue get namespaces\n",
		table, filepath.Join(config.Dir, "logs"), managedName, managed.AdminKubeconfig(), hub.AdminKubeconfig(), filepath.Dir(hub.Kubectl(ctx).Path))
	return nil
}

// loadFleet applies the example once: what a user has made of it since stays.
func loadFleet(ctx context.Context, hub *localhub.Hub, root string) error {
	loaded := filepath.Join(hub.Dir(), "fleet-loaded")
	if _, err := os.Stat(loaded); err == nil {
		return nil
	}
	say("Loading artifacts/examples/fleet")
	fleet := filepath.Join(root, "artifacts", "examples", "fleet")
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", fleet},
		{"apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", filepath.Join(fleet, "status")},
	} {
		if err := kubectl(ctx, hub, args...); err != nil {
			return err
		}
	}
	return os.WriteFile(loaded, nil, 0o600)
}

// kubectl runs kubectl as the hub's admin.
func kubectl(ctx context.Context, hub *localhub.Hub, args ...string) error {
	out, err := hub.Kubectl(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func membersTable(ctx context.Context, hub *localhub.Hub) (string, error) {
	out, err := hub.Kubectl(ctx, "get", "clustersetmembers").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl get clustersetmembers: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// running are the processes of hubs, by names that tell them apart.
func running(hubs []*localhub.Hub) map[string]int {
	pids := map[string]int{}
	for _, hub := range hubs {
		for name, pid := range hub.PIDs() {
			if filepath.Base(hub.Dir()) == managedName {
				name = managedName + "/" + name
			}
			pids[name] = pid
		}
	}
	return pids
}

func down(config localhub.Config) error {
	found, err := hubs(config)
	if err != nil {
		return err
	}
	if len(running(found)) == 0 {
		fmt.Println("The hub does not run.")
		return nil
	}
	say("Stopping the hub")
	for _, hub := range found {
		hub.Stop()
	}
	fmt.Printf("The hub is down. Its data is kept in %s: `make up` starts it again, `make clean` removes it.\n", config.Dir)
	return nil
}

func clean(config localhub.Config) error {
	found, err := hubs(config)
	if err != nil || len(found) == 0 {
		return err
	}
	for _, hub := range found {
		hub.Stop()
	}
	return os.RemoveAll(config.Dir)
}

func status(config localhub.Config) error {
	found, err := hubs(config)
	if err != nil {
		return err
	}
	pids := running(found)
	if len(pids) == 0 {
		fmt.Println("The hub does not run: start it with `make up`.")
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(pids)) {
		fmt.Printf("%-32s runs, process %d\n", name, pids[name])
	}
	return nil
}
