// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readonlyproperties removes properties that only the hub sets, such as the namespace of an agent, from what users write.
package readonlyproperties

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "EdgeReadOnlyProperties"
	// maxWarnings is more than the number of such properties in the three policies of a node.
	maxWarnings = 64
)

// Plugin drops the properties with a warning for each. Like Open Horizon, it does not reject them: files that were exported from a node have them.
// Decisions do not rely on this: they set these properties last (pkg/edge).
type Plugin struct {
	*admission.Handler
}

var _ admission.MutationInterface = &Plugin{}

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Admit implements admission.MutationInterface. No subresource changes a spec.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	dropped, err := drop(a)
	if err != nil {
		return err
	}
	for i, what := range dropped {
		if i == maxWarnings {
			warning.AddWarning(ctx, "", fmt.Sprintf("%d more properties were dropped: the hub sets them itself", len(dropped)-i))
			break
		}
		warning.AddWarning(ctx, "", what+" was dropped: the hub sets this property itself")
	}
	return nil
}

func drop(a admission.Attributes) ([]string, error) {
	spec := field.NewPath("spec")
	if n, _, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes")); n != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return edge.DropReadOnlyOfNode(&n.Spec, spec), nil
	}
	if s, _, err := permission.Objects[edge.EdgeService](a, edge.Resource("edgeservices")); s != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return edge.DropReadOnly(s.Spec.Policy, spec.Child("policy")), nil
	}
	if d, _, err := permission.Objects[edge.DeploymentPolicy](a, edge.Resource("deploymentpolicies")); d != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return edge.DropReadOnly(&d.Spec.Policy, spec), nil
	}
	c, _, err := permission.Objects[edge.DeployCheck](a, edge.Resource("deploychecks"))
	if c == nil {
		return nil, err
	}
	return ofCheck(&c.Spec, spec), nil
}

// ofCheck drops the properties from the objects in a check, so that the result is about what would be stored.
func ofCheck(check *edge.DeployCheckSpec, spec *field.Path) (dropped []string) {
	if check.Policy != nil {
		dropped = edge.DropReadOnly(&check.Policy.Policy, spec.Child("policy"))
	}
	for i := range check.Services {
		dropped = append(dropped, edge.DropReadOnly(check.Services[i].Spec.Policy, spec.Child("services").Index(i).Child("spec", "policy"))...)
	}
	for i := range check.Nodes {
		dropped = append(dropped, edge.DropReadOnlyOfNode(&check.Nodes[i].Spec, spec.Child("nodes").Index(i).Child("spec"))...)
	}
	return dropped
}
