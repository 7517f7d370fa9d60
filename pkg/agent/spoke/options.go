// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/files"
	"github.com/clusterhub/clusterhub/pkg/agent/limits"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Options configure the access to the agent's clusters.
type Options struct {
	// Kubeconfig is the path of the kubeconfig of the managed cluster; if it is empty, the pod's own identity is used.
	Kubeconfig string
	// Detached means that the management cluster is a different cluster.
	Detached bool
	// ManagementKubeconfig is the path of the kubeconfig of the management cluster, if that is a different cluster; if it is empty, the pod's own
	// identity is used.
	ManagementKubeconfig string
	// Namespace is the namespace of the agent's secret, on the management cluster.
	Namespace string
	// ManagedNamespace is the agent's namespace on the managed cluster. The default is Namespace.
	ManagedNamespace string
	// SameCluster means that both clusters of a detached agent are nevertheless the same.
	SameCluster bool
	// NamespaceScoped means that the agent has rights in Namespace alone.
	NamespaceScoped bool
	// Requests limits the requests to the managed cluster, except for works.
	Requests limits.Requests
}

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{Namespace: registration.AgentNamespace, Requests: limits.Default()}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "spoke-kubeconfig", o.Kubeconfig,
		"The path to the kubeconfig of the managed cluster. Inside a cluster, the default is the local cluster and the "+
			"service account of the pod. The agent waits for the file, and reloads it when it changes.")
	fs.BoolVar(&o.Detached, "detached", o.Detached,
		"If true, the agent runs outside of the managed cluster, and stores its Secrets and events on another one, the management cluster. "+
			"Requires --spoke-kubeconfig.")
	fs.StringVar(&o.ManagementKubeconfig, "management-kubeconfig", o.ManagementKubeconfig,
		"The path to the kubeconfig of the management cluster, with --detached. Inside a cluster, the default is the local cluster and the "+
			"service account of the pod. The agent waits for the file, and reloads it when it changes.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"The namespace of the agent's Secrets, on the managed cluster or, with --detached, on the management cluster. It must exist.")
	fs.StringVar(&o.ManagedNamespace, "spoke-namespace", o.ManagedNamespace,
		"The namespace of the agent's service accounts on the managed cluster, with --detached. The hub cannot control it. The default is "+
			"--namespace.")
	fs.BoolVar(&o.SameCluster, "same-cluster", o.SameCluster,
		"If true, the management cluster is the managed cluster, with --detached. Then the hub cannot control --namespace there either, which "+
			"contains the agent's Secrets.")
	fs.BoolVar(&o.NamespaceScoped, "namespace-scoped", o.NamespaceScoped,
		"If true, the agent has rights only in --namespace, and reads nothing outside of it. It does not report facts that require other rights: nodes, "+
			"ClusterClaims and the cluster's ID. Namespaces that sets of the hub request are not created, and works may only have objects in --namespace. "+
			"Requires --cluster-name. Do not change it for an existing agent.")
	o.Requests.AddFlags(fs, "", "to the managed cluster, except for works")
}

// Validate returns all errors of the flags. keeps is whether the process needs the management cluster.
func (o *Options) Validate(needsManagement bool) (errs []error) {
	inPod := os.Getenv("KUBERNETES_SERVICE_HOST") != ""
	switch {
	case o.Kubeconfig != "":
	case o.Detached:
		errs = append(errs, errors.New("--detached needs --spoke-kubeconfig, the kubeconfig of the managed cluster"))
	case !inPod:
		errs = append(errs, errors.New("--spoke-kubeconfig must name the kubeconfig of the managed cluster when hub-agent "+
			"runs outside of it"))
	}
	if o.Detached && needsManagement && o.ManagementKubeconfig == "" && !inPod {
		errs = append(errs, errors.New("--management-kubeconfig must name the kubeconfig of the management cluster when a detached "+
			"hub-agent runs outside of it"))
	}
	if !o.Detached && o.ManagementKubeconfig != "" {
		errs = append(errs, errors.New("--management-kubeconfig needs --detached: otherwise the managed cluster has the agent's secrets"))
	}
	if !o.Detached && o.ManagedNamespace != "" {
		errs = append(errs, errors.New("--spoke-namespace needs --detached: otherwise it is --namespace"))
	}
	if !o.Detached && o.SameCluster {
		errs = append(errs, errors.New("--same-cluster needs --detached: otherwise there is one cluster only"))
	}
	if o.Detached && o.NamespaceScoped {
		errs = append(errs, errors.New("--namespace-scoped must not be set with --detached: the agent runs in the namespace that it has rights in"))
	}
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty"))
	}
	return append(errs, o.Requests.Validate("")...)
}

// Managed reads the configuration for the managed cluster. The kubeconfig of a detached agent is in a mounted Secret of the management cluster, and
// may only name files beside it.
func (o *Options) Managed() (files.Kubeconfig, error) {
	read := files.ReadKubeconfig
	if o.Detached {
		read = files.ReadMountedKubeconfig
	}
	kubeconfig, err := read(o.Kubeconfig)
	if err == nil {
		kubeconfig.Config = o.Requests.In(kubeconfig.Config)
	}
	return kubeconfig, err
}

// Management reads the configuration for the cluster that stores the agent's secrets. It is the same as Managed, unless the agent is detached.
func (o *Options) Management() (files.Kubeconfig, error) {
	if !o.Detached {
		return o.Managed()
	}
	return files.ReadKubeconfig(o.ManagementKubeconfig)
}

// Own returns the agent's namespaces on the managed cluster.
func (o *Options) Own() []string {
	own := []string{cmp.Or(o.ManagedNamespace, o.Namespace)}
	if o.SameCluster {
		own = append(own, o.Namespace)
	}
	return own
}

// NewCluster returns the managed cluster of a configuration.
func (o *Options) NewCluster(config *rest.Config) (*Cluster, error) {
	c, err := New(config, cmp.Or(o.ManagedNamespace, o.Namespace))
	if err == nil && o.SameCluster && c.Namespace != o.Namespace {
		c.Home = o.Namespace
	}
	if err == nil {
		c.NamespaceScoped = o.NamespaceScoped
	}
	return c, err
}

// NewManagement returns the cluster that stores the agent's state.
func NewManagement(config *rest.Config, namespace string) (*management.Cluster, error) {
	limited := ours(config)
	limited.Timeout = Timeout
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, err
	}
	return &management.Cluster{Client: client, Namespace: namespace}, nil
}

// New returns the managed cluster of a configuration. namespace is the agent's own namespace there.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	config = ours(config)
	watching, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// A watch has no timeout, and all other requests have one.
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

// ours returns a copy of a configuration with the settings of all clients of the agent.
func ours(config *rest.Config) *rest.Config {
	return limits.WithoutRedirects(rest.AddUserAgent(rest.CopyConfig(config), "hub-agent"))
}
