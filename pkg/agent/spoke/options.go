// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"errors"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Options are the way to the agent's own cluster.
type Options struct {
	// Kubeconfig is a file; the pod's own identity is used when it is empty.
	Kubeconfig string
	// Namespace is where the agent keeps its secret.
	Namespace string
}

// NewOptions returns the defaults.
func NewOptions() Options { return Options{Namespace: registration.AgentNamespace} }

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "spoke-kubeconfig", o.Kubeconfig,
		"Path of the kubeconfig of the managed cluster. Inside a cluster, the default is that cluster and the pod's "+
			"service account.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace on the managed cluster of the agent's secrets. It has to exist.")
}

// Validate returns every error of the flags.
func (o *Options) Validate() (errs []error) {
	if o.Kubeconfig == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		errs = append(errs, errors.New("--spoke-kubeconfig must name the kubeconfig of the managed cluster when hub-agent "+
			"runs outside of it"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty"))
	}
	return errs
}

// Config is how the cluster is reached.
func (o *Options) Config() (*rest.Config, error) {
	config, err := command.RESTConfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return rest.AddUserAgent(config, "hub-agent"), nil
}

// New returns the cluster that a configuration reaches.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	watching, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// A watch is open for as long as it may be, everything else ends in time.
	limited := rest.CopyConfig(config)
	limited.Timeout = Timeout
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	unstructured, err := dynamic.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: client, Watching: watching, Dynamic: unstructured, Config: config, Namespace: namespace}, nil
}
