// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubfinalizers guards the finalizers by which the hub's controllers keep an object until what they have created for it is deleted. An object
// does not have the user who added a finalizer, so the names are guarded, and for a new ManagedCluster all finalizers.
package hubfinalizers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "HubFinalizers"

// Plugin rejects adding and removing the hub's finalizers by users who may not.
type Plugin struct {
	permission.Guard
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// hubs reports which finalizers of a kind are the hub's. It does not include those of providers and of users of clusters: these need the permission
// to change the object, as usual.
var hubs = map[schema.GroupResource]func(finalizer string) bool{
	cluster.Resource("managedclusters"): func(f string) bool { return strings.HasPrefix(f, cluster.GroupName+"/") },
	// The finalizers of a Cluster list the requests that have it, which the scheduler relies on.
	openmcp.Resource("clusters"): func(f string) bool {
		return f == openmcpv1alpha1.AccessFinalizer || strings.HasPrefix(f, openmcpv1alpha1.RequestFinalizerOnClusterPrefix)
	},
	openmcp.Resource("clusterrequests"): func(f string) bool { return f == openmcpv1alpha1.ClusterRequestFinalizer },
	// Without it, a replica set would be deleted before its works, which nothing would delete then.
	work.Resource("manifestworkreplicasets"): func(f string) bool { return f == work.ReplicaSetFinalizer },
	// The same holds for a placement and its work.
	edge.Resource("edgeplacements"): func(f string) bool { return f == edge.PlacementFinalizer },
}

// Rules returns the spellings of the permission to finalize the object of a request. Users who may accept a cluster have it, too: the finalizers of a
// cluster are about its acceptance, and Open Cluster Management's controllers have only that permission.
func Rules(a admission.Attributes) []rbac.Permission {
	// Permission: a finalizer of the hub is added or removed.
	rules := []rbac.Permission{permission.On(a, "update", "finalizers")}
	if permission.Is(a, cluster.Resource("managedclusters")) {
		// Permission: a finalizer of the hub is added to a ManagedCluster or removed from it by a user without the permission on its finalizers.
		rules = append(rules, permission.Accept(a)...)
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
	// Holders of a bootstrap token create clusters and change none. A finalizer on such a cluster would reserve its name, and its place among the
	// pending clusters, until an admin removes the finalizer.
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
			guardsAny = guardsAny || guarded(f)
			if guarded(f) || made {
				what = append(what, fmt.Sprintf("%s the finalizer %s", change.verb, f))
			}
		}
	}
	if len(what) == 0 {
		return nil
	}
	rules := Rules(a)
	if !guardsAny {
		// Other programs use these, and users who may change the cluster could add them later.
		// Permission: a ManagedCluster is created with a finalizer of another program.
		rules = append(rules, permission.On(a, "update", ""), permission.On(a, "patch", ""))
	}
	return p.Require(ctx, a, strings.Join(what, " or "), rules...)
}
