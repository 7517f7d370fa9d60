// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetdeletion warns users who delete a set that is in use.
package clustersetdeletion

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterSetDeletion"

// Counter counts the uses of a set.
type Counter interface {
	// Uses returns the number of clusters in a set, and of the bindings to it.
	Uses(ctx context.Context, set string) (members, bindings int, err error)
}

// Plugin warns. It rejects nothing.
type Plugin struct {
	*admission.Handler
	Counter Counter
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, which does nothing without a counter.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Delete)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.Counter == nil || !permission.Is(a, cluster.Resource("managedclustersets")) {
		return nil
	}
	name := a.GetName()
	if old, ok := a.GetOldObject().(*cluster.ManagedClusterSet); ok {
		// A request that deletes a collection has no name. Validate is called for each set in it.
		name = old.Name
	}
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	members, bindings, err := p.Counter.Uses(ctx, name)
	if err != nil || members+bindings == 0 {
		return nil //nolint:nilerr // a warning that cannot be made does not stop a deletion
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(
		"the ManagedClusterSet %q has %d member(s) and %d binding(s): the clusters stay, but are no longer in the set",
		name, members, bindings))
	return nil
}
