// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localhub runs a hub in the background, for `make up` and `make down`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
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
	config, repository, examples := localhub.Options{Detach: true, Log: printLine}, "", more{}
	root := &cobra.Command{
		Use: "localhub", Short: "Run a hub on this machine, in the background",
		SilenceUsage: true, SilenceErrors: true, DisableSuggestions: true, // an error is one line
	}
	root.PersistentFlags().StringVar(&config.Dir, "dir", "_output/hub", "The directory of the hub: its data, kubeconfigs and logs.")
	root.PersistentFlags().StringVar(&config.BinDir, "bin-dir", "_output/bin", "The directory of the binaries.")
	root.PersistentFlags().StringVar(&config.ImagesDir, "images", "",
		"The directory of unpacked images, as written by \"make roots\": our servers run in these instead of the binaries.")
	root.PersistentFlags().StringVar(&repository, "root", ".", "The directory of the repository, for the example.")
	start := &cobra.Command{Use: "up", Short: "Start processes that do not run or have changed, and load an example the first time", Args: cobra.NoArgs,
		Long: "Start processes that do not run or have changed, and load an example the first time.\n\n" +
			"Without flags a new hub has one process of each kind, and an existing hub is not changed.",
		Example: "  localhub up\n  localhub up --fronts=2 --hub-apiservers=2 --etcd-members=3\n  localhub up --clusters=2\n  localhub up --detached --edge",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inBackground(cmd.Context(), config, cmd.Flags())
		}}
	supervise := newSuperviseCommand(&config, func(ctx context.Context) error { return up(ctx, config, repository, examples) })
	for _, cmd := range []*cobra.Command{start, supervise} {
		topologyFlags(cmd.Flags(), &config)
		examples.addTo(cmd.Flags())
	}
	root.AddCommand(
		start,
		&cobra.Command{Use: "down", Short: "Stop the hub and retain its data", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return down(config) }},
		&cobra.Command{Use: "clean", Short: "Stop the hub and delete its data", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return clean(config) }},
		&cobra.Command{Use: "status", Short: "Show the status of all processes; the exit code is 1 if one does not run", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return status(config) }},
		supervise,
		newNodeCommand(&config),
		newEnterCommand(),
	)
	return root
}

// topologyFlags adds flags for the number of processes. 0, the default, preserves the number of the hub.
func topologyFlags(flags *pflag.FlagSet, config *localhub.Options) {
	flags.IntVar(&config.FrontReplicas, "fronts", 0,
		fmt.Sprintf("The number of kube-apiservers that users and agents can connect to, 1 to %d. The kubeconfigs name one that runs.", localhub.MaxReplicas))
	flags.IntVar(&config.Replicas, "hub-apiservers", 0,
		fmt.Sprintf("The number of hub-apiservers, 1 to %d. Several require an external etcd, which a hub has if it is first started with several.",
			localhub.MaxReplicas))
	flags.IntVar(&config.EtcdMembers, "etcd-members", 0,
		"The number of members of each etcd, 1 or 3. To change it later, first delete the hub with the command clean.")
	flags.IntVar(&config.Clusters, "clusters", 0,
		fmt.Sprintf("The number of plain clusters beside the hub, up to %d, which have no nodes, are not registered with the hub, and stop with it. The number can be increased later, but not reduced.",
			localhub.MaxClusters))
}

func printLine(format string, args ...any) { fmt.Printf("  "+format+" …\n", args...) }

// more are optional parts of the example.
type more struct{ detached, edge bool }

func (m *more) addTo(flags *pflag.FlagSet) {
	flags.BoolVar(&m.detached, "detached", false, "If true, the example has a cluster that runs no pods, "+detachedName+
		", whose agent hub-operator runs on the hub. Without the flag, an existing one is retained.")
	flags.BoolVar(&m.edge, "edge", false, "If true, the example has a cluster with edge nodes, "+edgeName+
		": one for the whole cluster, and two for teams that have a namespace each. Without the flag, an existing one is retained.")
}

// start starts the optional parts, and those that the hub has already. It returns the commands that show them.
func (m more) start(ctx context.Context, hub *localhub.Instance, config localhub.Options, root string) (next string, err error) {
	if m.detached || hasDetached(config) {
		if err := startDetached(ctx, hub, config); err != nil {
			return "", err
		}
		next += "  kubectl hub get klusterlets\n  kubectl get pods -A\n"
	}
	if m.edge || hasEdge(config) {
		if err := startEdge(ctx, hub, config, root); err != nil {
			return "", err
		}
		next += "  kubectl get edgeplacements -A\n  kubectl hub deploycheck --policy nowhere -n stores -o wide\n"
	}
	return next, nil
}

func up(ctx context.Context, config localhub.Options, root string, examples more) error {
	begun := time.Now()
	scheduler, err := filepath.Abs(accessExample(root, "scheduler.yaml"))
	if err != nil {
		return err
	}
	config.HubControllerManagerArgs = []string{"--scheduler-config=" + scheduler}
	hub, err := localhub.Start(ctx, config)
	if err != nil {
		return err
	}
	if err := loadFleet(ctx, hub, root); err != nil {
		return err
	}
	if err := startProvider(ctx, hub, root); err != nil {
		return err
	}
	if err := startManaged(ctx, hub, config); err != nil {
		return err
	}
	next, err := examples.start(ctx, hub, config, root)
	if err != nil {
		return err
	}
	if err := awaitAccess(ctx, hub); err != nil {
		return err
	}
	numbers, err := numbers(ctx, hub)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe hub is up after %s: %s.\n\n"+
		"`make status` lists its processes, kubeconfigs and logs, `make down` stops it and retains its data, `make clean` deletes it.\n"+
		"`kubectl hub ui --port %d` opens its page, http://127.0.0.1:%[3]d. Next:\n\n"+
		"  export KUBECONFIG=%s PATH=%s:$PATH\n  kubectl get clustersetmembers --as dana --as-group dev-team\n  kubectl hub get clusters\n"+
		"  kubectl get clusterprofiles,clusters,accessrequests -A\n  kubectl hub access blue -n teams --cluster-role view\n"+
		"  kubectl --context teams--blue get namespaces\n"+next,
		time.Since(begun).Round(time.Second), numbers, pagePort, hub.AdminKubeconfig(), filepath.Dir(hub.Kubectl(ctx).Path))
	return nil
}

// reached describes how to connect to the hub and its plain clusters.
func reached(hub *localhub.Instance) (string, error) {
	clusters, err := hub.Clusters()
	if err != nil {
		return "", err
	}
	rows := [][2]string{{"kubeconfig", hub.AdminKubeconfig()}, {"logs", filepath.Join(hub.Dir(), "logs")}}
	if fronts := hub.FrontURLs(); len(fronts) > 1 {
		rows = append(rows, [2]string{"fronts", strings.Join(fronts, ", ") + ", all with this kubeconfig"})
	}
	for _, c := range clusters {
		name, what := filepath.Base(c.Dir()), "is not registered with the hub"
		switch name {
		case managedName:
			what = "has joined the hub"
		case edgeName:
			what = "has edge nodes of the hub"
		case detachedName:
			what = "has joined the hub, and runs no agent"
		}
		rows = append(rows, [2]string{name, c.AdminKubeconfig() + ", of a cluster that " + what})
	}
	var b strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&b, "  %-10s  %s\n", row[0], row[1])
	}
	return b.String(), nil
}

// loadFleet applies the example once, and later preserves the changes of users. Placements are applied last. Their decisions stay, and a new cluster
// has a taint until the hub has observed its status: otherwise the decisions would differ each time.
func loadFleet(ctx context.Context, hub *localhub.Instance, root string) error {
	loaded := filepath.Join(hub.Dir(), "fleet-loaded")
	if _, err := os.Stat(loaded); err == nil {
		return nil
	}
	printLine("Loading artifacts/examples/fleet")
	fleet := filepath.Join(root, "artifacts", "examples", "fleet")
	apply := func(args ...string) error {
		// The hub may manage some of the fields when a second attempt applies them.
		return kubectl(ctx, hub, append([]string{"apply", "--server-side", "--force-conflicts", "-f"}, args...)...)
	}
	if err := apply(fleet); err != nil {
		return err
	}
	if err := apply(filepath.Join(fleet, "status"), "--subresource=status"); err != nil {
		return err
	}
	if err := awaitReachable(ctx, hub); err != nil {
		return err
	}
	if err := apply(filepath.Join(fleet, "placements")); err != nil {
		return err
	}
	return os.WriteFile(loaded, nil, 0o600)
}

// awaitReachable waits until the hub has removed the taint for a missing status from all accepted clusters.
func awaitReachable(ctx context.Context, hub *localhub.Instance) error {
	var out []byte
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		out, err = hub.Kubectl(ctx, "get", "managedclusters", "-o", "jsonpath={.items[?(@.spec.hubAcceptsClient==true)].spec.taints[*].key}").CombinedOutput()
		return err == nil && !strings.Contains(string(out), registration.TaintUnreachable), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the hub to remove the taint %s of the example's clusters: %w; the taints or the error: %s",
			registration.TaintUnreachable, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// kubectl runs kubectl as the hub's admin.
func kubectl(ctx context.Context, hub *localhub.Instance, args ...string) error {
	out, err := hub.Kubectl(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func down(config localhub.Options) error {
	hub, pids, err := open(config)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		fmt.Println("The hub is not running.")
		return nil
	}
	printLine("Stopping the hub")
	hub.Stop()
	fmt.Printf("The hub is stopped. Its data is retained in %s: `make up` restarts it, `make clean` deletes it.\n", config.Dir)
	return nil
}

func clean(config localhub.Options) error {
	hub, _, err := open(config)
	if err != nil || hub == nil {
		return err
	}
	hub.Stop()
	return os.RemoveAll(config.Dir)
}
