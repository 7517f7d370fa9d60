// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run implements the common part of every cluster provider, as a command: it publishes profiles, reconciles Clusters and grants access to
// them.
package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// NewManager creates a manager without controllers, as ctrl.NewManager does.
type NewManager func(*rest.Config, ctrl.Options) (ctrl.Manager, error)

// NewCommand returns the command of a kind of provider, with its subcommands init and run.
func NewCommand(kind clusterprovider.Kind) *cobra.Command {
	return NewCommandWith(kind, ctrl.NewManager)
}

// NewCommandWith returns the same command, whose subcommand run starts a manager of newManager.
func NewCommandWith(kind clusterprovider.Kind, newManager NewManager) *cobra.Command {
	cmd := &cobra.Command{Use: kind.Name, Short: kind.Short, SilenceUsage: true}
	start := &options{}
	initialize := &cobra.Command{
		Use: "init", Short: "Publish the provider's profiles and exit", Args: cobra.NoArgs, SilenceUsage: true,
		Long: "init creates or updates a ClusterProfile for each configuration of the provider, deletes those of deleted " +
			"configurations, and exits. It is idempotent.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return start.with(cmd.Context(), kind, start.initialize)
		},
	}
	start.addFlags(initialize.Flags())
	initialize.Flags().BoolVar(&start.dryRun, "dry-run", false, "If true, changes are only logged, and not made.")

	serve := &options{}
	run := &cobra.Command{
		Use: "run", Short: "Run the provider", Args: cobra.NoArgs, SilenceUsage: true,
		Long: "run reconciles the Clusters of the provider's profiles and the AccessRequests for them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve.with(cmd.Context(), kind, func(ctx context.Context, provider clusterprovider.Provider) error {
				return serve.run(ctx, provider, newManager)
			})
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

// with calls do with a provider.
func (o *options) with(ctx context.Context, kind clusterprovider.Kind, do func(context.Context, clusterprovider.Provider) error) error {
	if err := o.complete(); err != nil {
		return err
	}
	logger := o.logger()
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	provider, err := kind.New(ctx, o.Options)
	if err != nil {
		return fmt.Errorf("provider %s: %w", kind.Name, err)
	}
	return do(ctx, provider)
}

func (o *options) identity() hub.Identity {
	return hub.Identity{Name: o.ProviderName, Environment: o.Environment}
}

func (o *options) initialize(ctx context.Context, provider clusterprovider.Provider) error {
	c, err := client.New(o.Hub, client.Options{Scheme: hub.Scheme})
	if err != nil {
		return err
	}
	if o.dryRun {
		c = client.NewDryRunClient(c)
	}
	p := &profiles{Identity: o.identity(), provider: provider, client: c, live: c}
	return p.sync(ctrl.LoggerInto(ctx, o.logger()))
}
