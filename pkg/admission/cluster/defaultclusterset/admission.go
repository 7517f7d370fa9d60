// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaultclusterset adds a cluster without a set to the set "default".
package defaultclusterset

import (
	"context"
	"maps"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/component-base/featuregate"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "DefaultClusterSet"
	// Feature is the feature gate that disables it.
	Feature featuregate.Feature = cluster.DefaultSetFeature
)

// Plugin adds the label in the mutating phase, so that the permission for it is checked like for any other label.
type Plugin struct {
	*admission.Handler
	enabled bool
}

var (
	_ admission.MutationInterface = &Plugin{}
	_ initializer.WantsFeatures   = &Plugin{}
)

// New returns the plugin, which does nothing until it has the feature gates.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// InspectFeatureGates implements initializer.WantsFeatures.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(Feature)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error { return nil }

// Admit implements admission.MutationInterface. As in upstream, a cluster is always in a set: a label that is removed becomes "default".
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.enabled || a.GetSubresource() == "status" || a.GetSubresource() == "accept" {
		return nil
	}
	c, _, err := permission.Objects[cluster.ManagedCluster](a, cluster.Resource("managedclusters"))
	if c == nil || c.Labels[cluster.ClusterSetLabel] != "" {
		return err
	}
	labelled := maps.Clone(c.Labels)
	if labelled == nil {
		labelled = map[string]string{}
	}
	labelled[cluster.ClusterSetLabel] = cluster.DefaultSet
	c.Labels = labelled
	return nil
}
