// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster-provider runs the cluster providers that come with a hub.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/kubeconfig"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/run"
	"github.com/clusterhub/clusterhub/pkg/command"
	localprovider "github.com/clusterhub/clusterhub/pkg/local/provider"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(newCommand())) }

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster-provider",
		Short: "Run a provider of clusters",
		Long: "cluster-provider reconciles the Clusters of a hub, and grants access to them as AccessRequests request " +
			"it. There are several kinds of providers; several can run, with different names.",
	}
	for _, kind := range []clusterprovider.Kind{kubeconfig.Kind(), localKind()} {
		cmd.AddCommand(run.NewCommand(kind))
	}
	return cmd
}

// localKind is a provider for development. Its configuration is about this machine, so it is set by flags.
func localKind() clusterprovider.Kind {
	options := localprovider.Options{}
	return clusterprovider.Kind{
		Name: "local", Short: "Run clusters as processes on this machine, for development and tests",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&options.Dir, "dir", "", "The directory of the clusters.")
			fs.StringVar(&options.BinDir, "bin-dir", "", "The directory with the binaries etcd, kube-apiserver and kube-controller-manager.")
			fs.StringVar(&options.IssuerCAFile, "issuer-ca-file", "", "The path to a file with the CA certificates of OIDC issuers. The default is the root certificates of the system.")
			fs.BoolVar(&options.EndWithProvider, "end-with-provider", false, "If true, the processes of the clusters stop when the provider stops.")
			fs.BoolVar(&options.UnsafeNoFsync, "unsafe-no-fsync", false, "If true, data is not synced to disk, so that a crash of the machine loses data.")
		},
		New: func(_ context.Context, o clusterprovider.Options) (clusterprovider.Provider, error) {
			options.Owner = fmt.Sprintf("%s of the environment %s on %s", o.ProviderName, o.Environment, o.Hub.Host)
			return localprovider.New(options)
		},
	}
}
