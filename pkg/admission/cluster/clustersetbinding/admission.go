// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersetbinding guards the use of a set by a namespace.
package clustersetbinding

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "ManagedClusterSetBinding"

// Register adds the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses bindings by users who may not bind the set. A binding's set never changes, so its creation is all
// that has to be guarded.
type Plugin struct {
	permission.Guard
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
)

// New returns the plugin, to be given an authorizer.
func New() *Plugin { return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create)} }

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !permission.Is(a, cluster.Resource("managedclustersetbindings")) {
		return nil
	}
	binding, ok := a.GetObject().(*cluster.ManagedClusterSetBinding)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("%s got a %T", PluginName, a.GetObject()))
	}
	bind := permission.Rule{
		Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "bind", Name: binding.Spec.ClusterSet,
	}
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), bind)
	if held != nil {
		return nil
	}
	denied := permission.For(a.GetUserInfo())
	denied.Lacks("bind the cluster set "+binding.Spec.ClusterSet, bind, err)
	return denied.Error(a)
}
