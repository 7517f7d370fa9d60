// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge implements the task that makes the cluster an edge node of the hub, and reports the facts by which services are placed there.
package edge

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultNamespace is the default namespace of services on a cluster whose agent has rights in all of it.
const DefaultNamespace = "openhorizon-agent"

// Options are the flags of the task.
type Options struct {
	// Enabled makes the agent create an edge node for its cluster.
	Enabled bool
	// Namespace is the default namespace of services.
	Namespace string
}

// NewOptions returns the defaults.
func NewOptions() Options { return Options{Namespace: DefaultNamespace} }

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "edge", o.Enabled,
		"If true, the cluster is an edge node: the agent creates its EdgeNode on the hub if it does not exist, and reports in its status the facts "+
			"with which services are placed. --works deploys the services.")
	fs.StringVar(&o.Namespace, "edge-namespace", o.Namespace,
		"The default namespace of the services of edge nodes on the managed cluster. It must not be the agent's own: users who can read Secrets there can "+
			"act as the agent. With --namespace-scoped or --works-namespace, services are deployed to that namespace instead, and this flag is ignored.")
}

// Validate returns all errors of the flags.
func (o *Options) Validate() (errs []error) {
	if why := validation.IsDNS1123Label(o.Namespace); len(why) > 0 {
		errs = append(errs, fmt.Errorf("--edge-namespace: %q is not a DNS label: %s", o.Namespace, strings.Join(why, "; ")))
	}
	return errs
}
