// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster-provider is a minimal cluster provider: it offers one existing cluster by the kubeconfig of its admin in a file.
// pkg/clusterprovider/run has the code that all providers share; the methods of provider have the code of this one.
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
		Name: "cluster-provider", Short: "Provide one existing cluster, by the kubeconfig of its admin",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&p.file, "cluster-kubeconfig", "", "The path to the kubeconfig of the cluster's admin.")
		},
		New: func(context.Context, clusterprovider.Options) (clusterprovider.Provider, error) {
			if p.file == "" {
				return nil, errors.New("--cluster-kubeconfig is required")
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

// Profiles returns the offered profiles: here one, with the version of the cluster.
func (p *provider) Profiles(context.Context) ([]clusterprovider.Profile, error) {
	return []clusterprovider.Profile{{Config: "file"}}, nil
}

// Ensure reports the state of the cluster. A provider that creates clusters starts the creation here, and does not wait for it.
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
		return clusterprovider.State{Info: fmt.Sprintf("%s does not respond: %v", config.Host, err)}, nil
	}
	state := clusterprovider.State{Ready: true, Version: version.GitVersion, Info: config.Host}
	state.Endpoints.Set(v1alpha1.APISERVER_ENDPOINT_EXTERNAL, config.Host)
	return state, nil
}

// Remove deletes nothing, as the provider created nothing.
func (p *provider) Remove(context.Context, *v1alpha1.Cluster, clusterprovider.Profile) (bool, error) {
	return true, nil
}

// Connect returns a client configuration with which AccessRequests are granted.
func (p *provider) Connect(context.Context, *v1alpha1.Cluster) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", p.file)
}
