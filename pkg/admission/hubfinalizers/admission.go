// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubfinalizers guards the finalizers by which the hub's controllers keep an object until what they have made for it
// is gone. Who has set a finalizer is written nowhere, so it is the names that are guarded; and all of those that a cluster is
// made with.
package hubfinalizers

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "HubFinalizers"

// Register adds the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// Plugin refuses to add and to remove the hub's finalizers for users who may not.
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

// hubs tells which finalizers of a kind are the hub's. Those of providers and of who asks for clusters and access are not:
// they come and go by the right to change the object, as everywhere.
var hubs = map[schema.GroupResource]func(finalizer string) bool{
	cluster.Resource("managedclusters"): func(f string) bool { return strings.HasPrefix(f, cluster.GroupName+"/") },
	// A Cluster's say which requests have it, which is what the scheduler goes by.
	openmcp.Resource("clusters"): func(f string) bool {
		return f == openmcpv1alpha1.AccessFinalizer || strings.HasPrefix(f, openmcpv1alpha1.RequestFinalizerOnClusterPrefix)
	},
	openmcp.Resource("clusterrequests"): func(f string) bool { return f == openmcpv1alpha1.ClusterRequestFinalizer },
}

// Rules are the spellings of the right to the end of the object of a request. Whoever may accept a cluster has it, too:
// acceptance is what the finalizers of a cluster are about, and Open Cluster Management's controllers have that right alone.
func Rules(a admission.Attributes) []permission.Rule {
	rules := []permission.Rule{permission.On(a, "update", "finalizers")}
	if permission.Is(a, cluster.Resource("managedclusters")) {
		accept := permission.On(a, "update", "accept")
		rules = append(rules, accept)
		accept.Group = permission.RegisterGroup
		rules = append(rules, accept)
	}
	return rules
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	guarded := hubs[a.GetResource().GroupResource()]
	updated, old, ok := permission.Stored(a)
	if guarded == nil || !ok {
		return nil
	}
	var what []string
	guardsAny := false
	// Whoever has a bootstrap token makes clusters and changes none. What a finalizer keeps there has its name, and its place among
	// those that wait, until an admin takes the finalizer off.
	made := a.GetOperation() == admission.Create && permission.Is(a, cluster.Resource("managedclusters"))
	for _, change := range []struct {
		verb      string
		in, notIn []string
	}{
		{"remove", old.GetFinalizers(), updated.GetFinalizers()},
		{"add", updated.GetFinalizers(), old.GetFinalizers()},
	} {
		for _, f := range change.in {
			if slices.Contains(change.notIn, f) {
				continue
			}
			if guardsAny = guardsAny || guarded(f); guarded(f) || made {
				what = append(what, fmt.Sprintf("%s the finalizer %s", change.verb, f))
			}
		}
	}
	if len(what) == 0 {
		return nil
	}
	rules := Rules(a)
	if !guardsAny {
		// They are others', and whoever may change the cluster could add them later.
		rules = append(rules, permission.On(a, "update", ""), permission.On(a, "patch", ""))
	}
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), rules...)
	if held != nil {
		return nil
	}
	denied := permission.For(a.GetUserInfo())
	denied.Lacks(strings.Join(what, " or "), rules[0], err)
	return denied.Error(a)
}
