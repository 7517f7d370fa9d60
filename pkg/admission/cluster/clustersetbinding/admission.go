// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetbinding guards the use of a set by a namespace.
package clustersetbinding

import (
	"context"

	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterSetBinding"

// Plugin rejects bindings by users who may not bind the set. A binding's set is immutable, so only its creation is checked.
type Plugin struct {
	permission.Guard
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer.
func New() *Plugin { return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	binding, _, err := permission.Objects[cluster.ManagedClusterSetBinding](a, cluster.Resource("managedclustersetbindings"))
	if binding == nil {
		return err
	}
	// Permission (name: the set): a ManagedClusterSetBinding is created.
	bind := rbac.Permission{
		Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "bind", Name: binding.Spec.ClusterSet,
	}
	return p.Require(ctx, a, "bind the cluster set "+binding.Spec.ClusterSet, bind)
}
