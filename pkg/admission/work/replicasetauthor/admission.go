// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicasetauthor warns the author of a ManifestWorkReplicaSet about a missing permission when the set is written. Without it, only a
// condition reports later that the controller creates no works.
package replicasetauthor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/setroles"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "ReplicaSetAuthor"
	// maxAsked is the largest number of sets that are checked for a write: each needs a call of the authorizer.
	maxAsked = 4
)

// Plugin warns an author who may create works neither for all clusters nor for those of a set that is bound to the namespace. It refuses
// nothing: the author may have permissions in the namespaces of clusters, and the controller checks them before each write.
type Plugin struct {
	permission.Guard
	// Bindings are the ManagedClusterSetBindings of the hub. If it is nil, the plugin warns no one.
	Bindings rest.Lister
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer and the bindings.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface. Only a changed spec is checked: writing labels or the status does not make a user the author.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	set, old, err := permission.Objects[work.ManifestWorkReplicaSet](a, work.Resource("manifestworkreplicasets"))
	if set == nil || a.GetSubresource() != "" || p.Bindings == nil || equality.Semantic.DeepEqual(set.Spec, old.Spec) {
		return err
	}
	if lacking := p.lacking(ctx, a); len(lacking) > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("user %q may not create works on the clusters of the sets that are bound to this namespace (%s), "+
			"so none are created where the user may not create manifestworks in the cluster's namespace: this needs the role %s of the set "+
			"(kubectl hub grant %s --role %[3]s)", a.GetUserInfo().GetName(), strings.Join(lacking, ", "), setroles.Deployer, lacking[0]))
	}
	return nil
}

// lacking returns the sets that are bound to the namespace if the user may create works for the clusters of none of them. It returns nil if that
// cannot be decided.
func (p *Plugin) lacking(ctx context.Context, a admission.Attributes) []string {
	// Permission (namespace: none): a ManifestWorkReplicaSet is written without a warning, for all clusters.
	everywhere := rbac.Permission{Verb: "create", Group: work.GroupName, Resource: "manifestworks"}
	if held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), everywhere); held != nil || err != nil {
		return nil
	}
	names := p.bound(ctx, a.GetNamespace())
	if len(names) > maxAsked {
		return nil
	}
	for _, name := range names {
		// Permission (name: a set that is bound to the namespace): a ManifestWorkReplicaSet is written without a warning, for clusters of the set.
		bySet := rbac.Permission{Verb: "create", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "manifestworks", Name: name}
		if held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), bySet); held != nil || err != nil {
			return nil
		}
	}
	return names
}

// bound returns the sets that are bound to a namespace, from the watch cache.
func (p *Plugin) bound(ctx context.Context, namespace string) (names []string) {
	found, err := p.Bindings.List(request.WithNamespace(ctx, namespace), &internalversion.ListOptions{ResourceVersion: "0"})
	list, ok := found.(*cluster.ManagedClusterSetBindingList)
	if err != nil || !ok {
		return nil
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Spec.ClusterSet)
	}
	slices.Sort(names)
	return names
}
