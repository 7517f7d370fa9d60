// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeowner makes each EdgeNode one of the ManagedCluster of its name, with which it goes: what users said of a former cluster
// must not count for a later one of that name.
package nodeowner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// PluginName is the name of the plugin in flags and metrics.
const PluginName = "EdgeNodeOwner"

// Plugin sets the owner of a node when it is made, keeps it, and refuses every other one: a second owner that stays would keep the node
// when its cluster goes.
type Plugin struct {
	*admission.Handler
	// Clusters are the ManagedClusters of the hub. Without them no node is made.
	Clusters rest.Getter
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin, to be given the clusters.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// Admit implements admission.MutationInterface. What a client sends without an owner, such as an apply from a file, has the owner all the same.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes"))
	if updated == nil || a.GetSubresource() != "" {
		return err
	}
	owner, err := p.owner(ctx, updated.Name, old)
	if owner == nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(updated.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
	updated.OwnerReferences = append([]metav1.OwnerReference{*owner}, others...)
	return nil
}

// Validate implements admission.ValidationInterface. It looks at every subresource. A node that has no cluster has no owner: such a one is
// not made (nodeaccess), to users who have the right to be told.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	updated, old, err := permission.Objects[edge.EdgeNode](a, edge.Resource("edgenodes"))
	if updated == nil {
		return err
	}
	owner, err := p.owner(ctx, updated.Name, old)
	if err != nil {
		return err
	}
	var want []metav1.OwnerReference
	if owner != nil {
		want = append(want, *owner)
	}
	if equality.Semantic.DeepEqual(updated.OwnerReferences, want) {
		return nil
	}
	return admission.NewForbidden(a, errors.New("the owner of an EdgeNode is the ManagedCluster of its name, and no other object: "+
		"leave metadata.ownerReferences out, the server sets it"))
}

// owner is the reference to the cluster of a node. What is stored stays; it is nil if there is no cluster.
func (p *Plugin) owner(ctx context.Context, name string, old *edge.EdgeNode) (*metav1.OwnerReference, error) {
	for i := range old.OwnerReferences {
		if o := &old.OwnerReferences[i]; o.APIVersion == clusterv1.SchemeGroupVersion.String() && o.Kind == "ManagedCluster" && o.Name == name {
			return o.DeepCopy(), nil
		}
	}
	if name == "" {
		return nil, nil // The server is yet to make the name. There is no cluster for it.
	}
	if p.Clusters == nil {
		return nil, apierrors.NewServiceUnavailable("the server is still starting: try again in a few seconds")
	}
	// The store is asked: a cache may have a cluster of before.
	object, err := p.Clusters.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("%s cannot read the ManagedCluster %q: %w", PluginName, name, err))
	}
	c, ok := object.(*cluster.ManagedCluster)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the ManagedCluster %q is a %T", name, object))
	}
	return &metav1.OwnerReference{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster", Name: c.Name, UID: c.UID}, nil
}
