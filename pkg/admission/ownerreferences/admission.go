// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownerreferences guards metadata.ownerReferences of all our kinds: an object whose owner is not there is deleted by
// the hub's garbage collector, whoever wrote the reference.
package ownerreferences

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "OwnerReferences"

// Register adds the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses changes of owner references by users who may not delete the object. Unlike Kubernetes' plugin of this
// purpose it does not look at blockOwnerDeletion: any other object of the hub can have it as well.
type Plugin struct {
	permission.Guard
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
)

// New returns the plugin, to be given an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// ofTheirMakers are the kinds that stay what whoever made them wanted. They may be born with an owner, on whose end the
// programs that make them rely. On the others more comes to hang than their maker has a say in: acceptance, labels,
// bindings, clusters, requests.
var ofTheirMakers = map[schema.GroupResource]bool{
	cluster.Resource("managedclustersetbindings"): true,
	openmcp.Resource("clusterrequests"):           true,
	openmcp.Resource("accessrequests"):            true,
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, ok := permission.Stored(a)
	if !ok || equality.Semantic.DeepEqual(updated.GetOwnerReferences(), old.GetOwnerReferences()) {
		return nil
	}
	if a.GetOperation() == admission.Create && ofTheirMakers[a.GetResource().GroupResource()] {
		return nil
	}
	rule := permission.On(a, "delete", "")
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), rule)
	if held != nil {
		return nil
	}
	denied := permission.For(a.GetUserInfo())
	denied.Lacks("change metadata.ownerReferences (when the owners are gone, the garbage collector deletes the object)", rule, err)
	return denied.Error(a)
}
