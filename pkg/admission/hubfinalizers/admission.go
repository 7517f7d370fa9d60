// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubfinalizers guards the finalizers by which the hub's controllers keep an object until what they have made for it
// is gone. An object does not say who has set a finalizer, so the names are guarded; of a new ManagedCluster, all finalizers.
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
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "HubFinalizers"

// Plugin refuses to add and to remove the hub's finalizers for users who may not.
type Plugin struct {
	permission.Guard
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin, to be given an authorizer.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// hubs tells which finalizers of a kind are the hub's. Those of providers and of users of clusters are not: they come and go
// by the right to change the object, as everywhere.
var hubs = map[schema.GroupResource]func(finalizer string) bool{
	cluster.Resource("managedclusters"): func(f string) bool { return strings.HasPrefix(f, cluster.GroupName+"/") },
	// A Cluster's say which requests have it, which is what the scheduler goes by.
	openmcp.Resource("clusters"): func(f string) bool {
		return f == openmcpv1alpha1.AccessFinalizer || strings.HasPrefix(f, openmcpv1alpha1.RequestFinalizerOnClusterPrefix)
	},
	openmcp.Resource("clusterrequests"): func(f string) bool { return f == openmcpv1alpha1.ClusterRequestFinalizer },
	// A replica set without it would go before its works, which nothing deletes then.
	work.Resource("manifestworkreplicasets"): func(f string) bool { return f == work.ReplicaSetFinalizer },
	// The same of a placement and its work.
	edge.Resource("edgeplacements"): func(f string) bool { return f == edge.PlacementFinalizer },
}

// Rules are the spellings of the right to the end of the object of a request. Users who may accept a cluster have it, too:
// acceptance is what the finalizers of a cluster are about, and Open Cluster Management's controllers have only that right.
func Rules(a admission.Attributes) []permission.Rule {
	// Permission: a finalizer of the hub is added or removed.
	rules := []permission.Rule{permission.On(a, "update", "finalizers")}
	if permission.Is(a, cluster.Resource("managedclusters")) {
		// Permission: a finalizer of the hub is added to a ManagedCluster or removed, by a user without the right to its finalizers.
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
	// Holders of a bootstrap token make clusters and change none. A finalizer on such a cluster would keep its name, and its
	// place among those that wait, until an admin removes the finalizer.
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
		// They are others', and users who may change the cluster could add them later.
		// Permission: a ManagedCluster is made with a finalizer that is not the hub's.
		rules = append(rules, permission.On(a, "update", ""), permission.On(a, "patch", ""))
	}
	return p.Require(ctx, a, strings.Join(what, " or "), rules...)
}
