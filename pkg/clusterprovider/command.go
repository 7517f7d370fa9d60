// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of provider, of which several can run under different names.
type Kind struct {
	// Name of the command, and Short what is said about it.
	Name, Short string
	// AddFlags adds flags of the kind's own. It may be nil. What a deployment by openMCP has to set belongs in objects on the
	// hub instead.
	AddFlags func(*pflag.FlagSet)
	// New makes the provider.
	New func(context.Context, Options) (Provider, error)
}

// NewCommand returns the command of a kind of provider, with its subcommands init and run.
func NewCommand(kind Kind) *cobra.Command {
	cmd := &cobra.Command{Use: kind.Name, Short: kind.Short, SilenceUsage: true}
	start := &Options{}
	initialize := &cobra.Command{
		Use: "init", Short: "Publish the provider's profiles, once", Args: cobra.NoArgs, SilenceUsage: true,
		Long: "init publishes the provider's profiles and ends: a ClusterProfile for each of its configurations, and none for " +
			"configurations that are gone. It can be repeated.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return start.with(cmd.Context(), kind, start.initialize)
		},
	}
	start.addFlags(initialize.Flags())
	initialize.Flags().BoolVar(&start.dryRun, "dry-run", false, "Change nothing, and only log what would be done.")

	serve := &Options{}
	run := &cobra.Command{
		Use: "run", Short: "Run the provider until it is ended", Args: cobra.NoArgs, SilenceUsage: true,
		Long: "run keeps the Clusters of the provider's profiles, and access to them as AccessRequests ask for it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve.with(cmd.Context(), kind, serve.run)
		},
	}
	serve.addFlags(run.Flags())
	serve.addRunFlags(run.Flags())

	for _, sub := range []*cobra.Command{initialize, run} {
		if kind.AddFlags != nil {
			kind.AddFlags(sub.Flags())
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

// with does something with a provider.
func (o *Options) with(ctx context.Context, kind Kind, do func(context.Context, Provider) error) error {
	if err := o.complete(); err != nil {
		return err
	}
	logger := o.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	provider, err := kind.New(ctx, *o)
	if err != nil {
		return fmt.Errorf("provider %s: %w", kind.Name, err)
	}
	return do(ctx, provider)
}

func (o *Options) identity() identity {
	return identity{name: o.ProviderName, environment: o.Environment}
}

func (o *Options) initialize(ctx context.Context, provider Provider) error {
	c, err := client.New(o.Hub, client.Options{Scheme: hubScheme})
	if err != nil {
		return err
	}
	if o.dryRun {
		c = client.NewDryRunClient(c)
	}
	p := &profiles{identity: o.identity(), provider: provider, client: c, live: c}
	return p.sync(ctrl.LoggerInto(ctx, o.logger()))
}
