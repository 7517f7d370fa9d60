// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// topRows is the default number of rows.
const topRows = 50

type topOptions struct {
	*kit.Options
	out    *kit.Format
	sortBy string
	limit  int
}

// NewTopCommand returns the command top.
func NewTopCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("top", "Compare the clusters, sets or agents of a hub", newTopClustersCommand(opts), newTopSetsCommand(opts), newTopAgentsCommand(opts))
}

func (o *topOptions) addTo(cmd *cobra.Command, orders []string, order string) {
	o.out = kit.NewFormat("table", "json", "yaml")
	o.out.AddTo(cmd)
	cmd.Flags().StringVar(&o.sortBy, "sort-by", order, "Sort order: "+strings.Join(orders, ", ")+".")
	cmd.Flags().IntVar(&o.limit, "limit", topRows, "Number of rows to show. 0 shows all.")
	kit.Must(cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp)))
}

// open checks the flags before any request is sent.
func (o *topOptions) open(check func(order string) error) (*kit.HubClient, error) {
	if o.limit < 0 {
		return nil, fmt.Errorf("--limit must be 0 or more, not %d", o.limit)
	}
	if err := check(o.sortBy); err != nil {
		return nil, fmt.Errorf("--sort-by: %w", err)
	}
	return o.Hub()
}

// show prints rows, or the objects that they are made of. The notes list what was not visible, and what was left out.
func (o *topOptions) show(result any, rows *metav1.Table, shown, all int, notes []string) error {
	if o.out.Value != "table" {
		if err := o.out.Document(o.Out, result); err != nil {
			return err
		}
	} else if err := kit.NewTable().PrintRows(o.Out, rows); err != nil {
		return err
	}
	if shown < all {
		notes = append(notes, fmt.Sprintf("%d of %d are shown: --limit 0 shows all", shown, all))
	}
	l := &kit.Lines{Out: o.ErrOut}
	for _, note := range notes {
		l.Printf("%s", note)
	}
	return l.Err
}

func newTopClustersCommand(opts *kit.Options) *cobra.Command {
	o := &topOptions{Options: opts}
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "Compare clusters: their last heartbeat, their resources, and their number of works",
		Long: "top clusters compares the clusters that you may see. LAST HEARD is the age of the last renewal of the agent's lease, CPU and MEMORY " +
			"are the allocatable resources that the agent reports. The permissions to list leases and manifestworks in all namespaces show more; values " +
			"that you may not see are " + kit.Unknown + ".",
		Example: kit.Example("kubectl hub top clusters\nkubectl hub top clusters --sort-by=memory --limit=10"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.clusters(cmd.Context(), false, topClusterRows) },
	}
	o.addTo(cmd, tree.ClusterOrders(), "lease")
	return cmd
}

func newTopAgentsCommand(opts *kit.Options) *cobra.Command {
	o := &topOptions{Options: opts}
	cmd := &cobra.Command{
		Use:     "agents",
		Aliases: []string{"agent"},
		Short:   "Compare the agents of clusters: their last heartbeat, their clocks and certificates",
		Long: "top agents compares the agents of the clusters that you may see: whether they are accepted, when they last renewed their lease, whether " +
			"their clock is in sync and their certificate valid, and the versions of the agent and of Kubernetes that they report. SKEW is why the " +
			"version of an agent is not supported with that of the hub. UPGRADE is outdated for an agent that is older than the hub, and for one that kubectl hub agent " +
			"upgrade upgrades the new version and its progress. The permission to list leases in all namespaces shows when they last renewed their lease, " +
			"that to get the Deployment of hub-apiserver the skew, and those to list manifestworkreplicasets and manifestworks the upgrades.",
		Example: kit.Example("kubectl hub top agents\nkubectl hub top agents --sort-by=version --limit=0\nkubectl hub top agents --sort-by=upgrade"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.clusters(cmd.Context(), true, topAgentRows) },
	}
	o.addTo(cmd, tree.ClusterOrders(), "lease")
	return cmd
}

func (o *topOptions) clusters(ctx context.Context, agents bool, rows func([]*tree.ClusterUse, time.Time) *metav1.Table) error {
	h, err := o.open(func(order string) error {
		_, err := tree.SortClusters(nil, order, 0)
		return err
	})
	if err != nil {
		return err
	}
	uses, notes, err := listClusterUses(ctx, h)
	if err != nil {
		return err
	}
	if agents {
		version := hubVersion(ctx, h)
		for _, u := range uses {
			u.Skew = registration.AgentSkew(version, u.Agent)
		}
		if version == "" {
			notes = append(notes, "Not seen: the version of the hub, to which the versions of agents are compared")
		}
		switch err := addUpgrades(ctx, h, uses, version); {
		case hidden(err):
			notes = append(notes, "Not seen: upgrades of agents: "+why(err))
		case err != nil:
			return err
		}
	}
	all := len(uses)
	shown, err := tree.SortClusters(slices.Collect(maps.Values(uses)), o.sortBy, o.limit)
	if err != nil {
		return err
	}
	return o.show(shown, rows(shown, time.Now()), len(shown), all, notes)
}

func topClusterRows(uses []*tree.ClusterUse, now time.Time) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "State", "Last Heard", "CPU", "Memory", "Works", "Reason")}
	for _, u := range uses {
		cpu, memory, works := kit.Unknown, kit.Unknown, kit.Unknown
		if u.CPU != nil {
			cpu = u.CPU.String()
		}
		if u.Memory != nil {
			memory = u.Memory.String()
		}
		if u.Works != nil {
			works = strconv.Itoa(*u.Works)
		}
		rows.Rows = append(rows.Rows, printableRow(u.Name, string(u.State), lastHeard(u, now), cpu, memory, works, kit.OrNone(u.Reason)))
	}
	return rows
}

func topAgentRows(uses []*tree.ClusterUse, now time.Time) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Cluster", "Accepted", "Available", "Last Heard", "Clock", "Certificate", "Request Waits", "Agent Version", "Skew", "Upgrade", "Kubernetes Version")}
	for _, u := range uses {
		rows.Rows = append(rows.Rows, printableRow(u.Name, strconv.FormatBool(u.Accepted), u.Available, lastHeard(u, now), u.Clock, u.Certificate,
			strconv.FormatBool(u.Waits), kit.OrNone(u.Agent), kit.OrNone(u.Skew), kit.OrNone(u.Upgrade), kit.OrNone(u.Kubernetes)))
	}
	return rows
}

func lastHeard(u *tree.ClusterUse, now time.Time) string {
	if age, known := u.Age(now); known {
		return duration.HumanDuration(age)
	}
	return kit.Unknown
}

// printableRow returns a row, with control characters escaped.
func printableRow(cells ...string) (row metav1.TableRow) {
	for _, cell := range cells {
		row.Cells = append(row.Cells, command.Printable(cell))
	}
	return row
}

func newTopSetsCommand(opts *kit.Options) *cobra.Command {
	o := &topOptions{Options: opts}
	cmd := &cobra.Command{
		Use:     "sets",
		Aliases: []string{"set", "clustersets"},
		Short:   "Compare sets: how many members they have, and how many of these are available",
		Long: "top sets counts the members of the sets that you may get, by their state. A member is waiting if the hub does not accept it, or " +
			"if it has not joined. --sort-by=missing lists the sets with the most members that are not available first.",
		Example: kit.Example("kubectl hub top sets\nkubectl hub top sets --sort-by=missing --limit=5"),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.sets(cmd.Context()) },
	}
	o.addTo(cmd, tree.SetOrders(), "members")
	return cmd
}

func (o *topOptions) sets(ctx context.Context) error {
	h, err := o.open(func(order string) error {
		_, err := tree.SortSets(nil, order, 0)
		return err
	})
	if err != nil {
		return err
	}
	uses, err := listSetUses(ctx, h)
	if err != nil {
		return err
	}
	if len(uses) == 0 {
		return errors.New("you may not see any set: an admin can let you see one with kubectl hub grant SET --role viewer")
	}
	all := len(uses)
	shown, err := tree.SortSets(slices.Collect(maps.Values(uses)), o.sortBy, o.limit)
	if err != nil {
		return err
	}
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "Members", "Available", "Not Available", "Unknown", "Waiting")}
	for _, u := range shown {
		rows.Rows = append(rows.Rows, printableRow(u.Name, strconv.Itoa(u.Members), strconv.Itoa(u.Available), strconv.Itoa(u.NotAvailable),
			strconv.Itoa(u.Unknown), strconv.Itoa(u.Waiting)))
	}
	return o.show(shown, rows, len(shown), all, nil)
}
