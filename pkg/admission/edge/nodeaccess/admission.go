// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeaccess guards EdgeNodes: a user who may change a cluster, by its name or by a set, determines what may be deployed to it.
package nodeaccess

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "EdgeNodeAccess"

// Sets returns the sets of a cluster.
type Sets interface {
	// SetsOf returns the sets of a cluster by which the user may have permissions on it. There are few enough to check all of them.
	SetsOf(ctx context.Context, who user.Info, c *cluster.ManagedCluster) ([]string, error)
}

// Plugin rejects requests to create, update or delete an EdgeNode by users who may not update the ManagedCluster of its name, and requests to create
// one without such a cluster. The agent of the cluster may create an empty one. A different plugin checks the status (hubstatus).
type Plugin struct {
	permission.Guard
	// Clusters gets the ManagedClusters of the hub. If it is nil, only permissions by name count, and no node can be created.
	Clusters rest.Getter
	// Sets returns the sets of the clusters. If it is nil, only permissions by name count.
	Sets Sets
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin. It needs an authorizer, the clusters and their sets.
func New() *Plugin {
	return &Plugin{Guard: permission.NewGuard(PluginName, admission.Create, admission.Update, admission.Delete)}
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !permission.Is(a, edge.Resource("edgenodes")) || a.GetSubresource() == "status" {
		return nil
	}
	node, err := written(a)
	if err != nil {
		return err
	}
	who := a.GetUserInfo()
	if who == nil {
		return admission.NewForbidden(a, errors.New("the user who writes this EdgeNode is not known"))
	}
	byAgent := registration.IsAgent(who.GetName(), who.GetGroups(), node.Name)
	if byAgent {
		// An agent has permission to update its cluster, which does not count here.
		err = agentMay(a, node)
	} else {
		err = p.userMay(ctx, a, node.Name)
	}
	if err != nil || a.GetOperation() != admission.Create {
		return err
	}
	return p.clusterIsThere(ctx, a, node.Name, byAgent)
}

// written returns the node that a request writes or deletes. For a deletion it is the stored node: the request for a collection has no name.
func written(a admission.Attributes) (*edge.EdgeNode, error) {
	object := a.GetObject()
	if a.GetOperation() == admission.Delete {
		object = a.GetOldObject()
	}
	node, ok := object.(*edge.EdgeNode)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("%s got a %T, and expected an EdgeNode", PluginName, object))
	}
	return node, nil
}

// agentMay returns an error unless an agent creates the empty node for its own facts.
func agentMay(a admission.Attributes, node *edge.EdgeNode) error {
	who := a.GetUserInfo()
	own, agent := registration.AgentCluster(who.GetName(), who.GetGroups())
	spec := node.Spec
	if spec.NodeType == edge.NodeTypeCluster { // the default
		spec.NodeType = ""
	}
	switch {
	case !agent || own != node.Name || a.GetOperation() != admission.Create:
	case !equality.Semantic.DeepEqual(spec, edge.EdgeNodeSpec{}):
	case len(node.Labels)+len(node.Annotations)+len(node.Finalizers) > 0:
	default:
		return nil
	}
	return admission.NewForbidden(a, errors.New("an agent may create the EdgeNode of its own cluster, with only the name, and write its status: "+
		"only users write the spec"))
}

// userMay returns nil for a user who may update the cluster of this name, or the clusters of one of its sets.
func (p *Plugin) userMay(ctx context.Context, a admission.Attributes, name string) error {
	d := p.Decide(a)
	// Permission (name: the cluster): an EdgeNode is created, changed or deleted. The permission to update the clusters of a set is sufficient, too.
	byName := rbac.Permission{Verb: "update", Group: cluster.GroupName, Resource: "managedclusters", Name: name}
	held, err := permission.Holds(ctx, p.Authorizer, a.GetUserInfo(), byName)
	if held == nil && err == nil {
		held, err = p.bySet(ctx, a.GetUserInfo(), name)
	}
	if held != nil {
		d.Uses(*held)
	} else {
		d.Lacks(fmt.Sprintf("write the EdgeNode %q without the right to update its cluster, by name or by a set (managedclustersets/clusters)", name), byName, err)
	}
	return d.End(ctx)
}

// bySet returns the permission to update the clusters of a set that currently has the cluster.
func (p *Plugin) bySet(ctx context.Context, who user.Info, name string) (*rbac.Permission, error) {
	c, err := p.cluster(ctx, name)
	if c == nil || p.Sets == nil {
		return nil, err
	}
	sets, err := p.Sets.SetsOf(ctx, who, c)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		// Permission (name: a set that the cluster is in): an EdgeNode is created, changed or deleted by a user who may also get the clusters of the set.
		rule := rbac.Permission{Verb: "update", Group: cluster.GroupName, Resource: "managedclustersets", Subresource: "clusters", Name: set}
		if held, err := permission.Holds(ctx, p.Authorizer, who, rule); held != nil || err != nil {
			return held, err
		}
	}
	return nil, nil
}

// clusterIsThere rejects a new node without a cluster, and one of a cluster that is being deleted: it would be deleted with it.
func (p *Plugin) clusterIsThere(ctx context.Context, a admission.Attributes, name string, byAgent bool) error {
	c, err := p.cluster(ctx, name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	problem := ""
	switch {
	case c == nil:
		problem = "no ManagedCluster has this name: an EdgeNode has the name of the ManagedCluster that its agent registers"
	case c.DeletionTimestamp != nil:
		problem = "the ManagedCluster of this name is being deleted: wait until it is gone, and exists again"
	case byAgent && !c.Spec.HubAcceptsClient:
		return admission.NewForbidden(a, fmt.Errorf("cluster %q is not accepted: its agent may not create an EdgeNode until an admin of the hub accepts it", name))
	default:
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, problem)})
}

// cluster returns the cluster of a node, or nil if it does not exist. It reads from the store, because permissions and names depend on it.
func (p *Plugin) cluster(ctx context.Context, name string) (*cluster.ManagedCluster, error) {
	if p.Clusters == nil {
		return nil, errors.New("the server is still starting: try again in a few seconds")
	}
	object, err := p.Clusters.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the ManagedCluster %q cannot be read: %w", name, err)
	}
	c, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return nil, fmt.Errorf("the ManagedCluster %q is a %T", name, object)
	}
	return c, nil
}
