// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster-provider is the smallest cluster provider that there can be: it offers one cluster, which somebody else has
// made, by the kubeconfig of its admin in a file. What every provider does is in pkg/clusterprovider/run; what this one does, in
// the methods of provider.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &provider{}
	// The command has the subcommands init and run, with all flags of the contract.
	command := run.NewCommand(clusterprovider.Kind{
		Name: "cluster-provider", Short: "One cluster, by a kubeconfig in a file",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&p.file, "cluster-kubeconfig", "", "Kubeconfig of the cluster's admin.")
		},
		New: func(context.Context, clusterprovider.Options) (clusterprovider.Provider, error) {
			if p.file == "" {
				return nil, errors.New("--cluster-kubeconfig must name a kubeconfig")
			}
			return p, nil
		},
	})
	if command.ExecuteContext(ctx) != nil {
		os.Exit(1)
	}
}

// provider has one profile. Every Cluster of it is the same cluster.
type provider struct{ file string }

// Profiles are what is offered: here one, in whatever version it has.
func (p *provider) Profiles(context.Context) ([]clusterprovider.Profile, error) {
	return []clusterprovider.Profile{{Config: "file"}}, nil
}

// Ensure says how far the cluster is. A provider that makes clusters begins with it here, and does not wait for it.
func (p *provider) Ensure(ctx context.Context, c *v1alpha1.Cluster, _ clusterprovider.Profile) (clusterprovider.State, error) {
	config, err := p.Connect(ctx, c)
	if err != nil {
		return clusterprovider.State{}, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return clusterprovider.State{}, err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return clusterprovider.State{Info: fmt.Sprintf("%s does not answer: %v", config.Host, err)}, nil
	}
	state := clusterprovider.State{Ready: true, Version: version.GitVersion, Info: config.Host}
	state.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, config.Host)
	return state, nil
}

// Remove has nothing to remove.
func (p *provider) Remove(context.Context, *v1alpha1.Cluster, clusterprovider.Profile) (bool, error) {
	return true, nil
}

// Connect is how AccessRequests are answered.
func (p *provider) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", p.file)
}
