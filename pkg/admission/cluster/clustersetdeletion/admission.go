// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetdeletion warns who deletes a set that is in use.
package clustersetdeletion

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterSetDeletion"

// Counter counts what hangs on a set.
type Counter interface {
	// Uses returns the number of clusters in a set and of the bindings to it.
	Uses(ctx context.Context, set string) (members, bindings int, err error)
}

// WantsCounter is implemented by what is given a Counter when the server is assembled.
type WantsCounter interface{ SetCounter(Counter) }

// Register adds the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin warns; it refuses nothing.
type Plugin struct {
	*admission.Handler
	counter Counter
}

var (
	_ admission.ValidationInterface = &Plugin{}
	_ WantsCounter                  = &Plugin{}
)

// New returns the plugin, which is silent without a counter.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Delete)} }

// SetCounter implements WantsCounter.
func (p *Plugin) SetCounter(c Counter) { p.counter = c }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.counter == nil || !permission.Is(a, cluster.Resource("managedclustersets")) {
		return nil
	}
	name := a.GetName()
	if old, ok := a.GetOldObject().(*cluster.ManagedClusterSet); ok {
		// A request that deletes a collection names none, and comes by once for each set in it.
		name = old.Name
	}
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	members, bindings, err := p.counter.Uses(ctx, name)
	if err != nil || members+bindings == 0 {
		return nil //nolint:nilerr // a warning that cannot be made does not keep anybody from deleting
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(
		"the ManagedClusterSet %q has %d member(s) and %d binding(s): the clusters stay, but are no longer in the set",
		name, members, bindings))
	return nil
}
